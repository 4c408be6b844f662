import { ENOENT } from "./errno.ts";
import type { Exchange } from "./exchange.ts";
import { refusalFault } from "./faults.ts";
import type { MessageBuilder } from "./wire/builder.ts";

// linux/netlink.h, linux/genetlink.h.
export const NETLINK_GENERIC = 16;
/** struct genlmsghdr: command, version, two bytes reserved. */
export const GENERIC_BYTES = 4;
const GENL_ID_CTRL = 0x10;
const CTRL_CMD_GETFAMILY = 3;
const CTRL_VERSION = 1;
const CTRL_ATTR_FAMILY_ID = 1;
const CTRL_ATTR_FAMILY_NAME = 2;

/** What a request of a generic netlink family begins with. */
export interface GenericHeader {
  /** Id of the family, which the kernel gives out at run time. */
  readonly family: number;
  readonly command: number;
  readonly version: number;
  /** NLM_F_* beside NLM_F_REQUEST. */
  readonly flags?: number;
}

/** Starts a message with a struct genlmsghdr. */
export function beginGeneric(builder: MessageBuilder, sequence: number, header: GenericHeader): void {
  builder.begin(header.family, header.flags ?? 0, sequence);
  builder.u8(header.command);
  builder.u8(header.version);
  builder.u16(0);
}

/**
 * `genl ctrl get name NAME`: the id of a generic netlink family, undefined when the kernel has none of that name. The
 * kernel loads the module of the family where it can.
 */
export function resolveFamily(exchange: Exchange, name: string): number | undefined {
  const { refusal, messages } = exchange.request((builder, sequence) => {
    beginGeneric(builder, sequence, {
      family: GENL_ID_CTRL,
      command: CTRL_CMD_GETFAMILY,
      version: CTRL_VERSION,
    });
    builder.attributeText(CTRL_ATTR_FAMILY_NAME, name);
    builder.end();
  });
  if (refusal?.errno === ENOENT) return undefined;
  if (refusal) throw refusalFault(`look up the netlink family "${name}"`, refusal);
  const attributes = messages[0]?.attributes(GENERIC_BYTES);
  while (attributes?.next()) if (attributes.type === CTRL_ATTR_FAMILY_ID) return attributes.u16();
  return undefined;
}
