import type { DeviceNames } from "../devices.ts";
import type { FdbObject, FdbState } from "../objects.ts";
import type { MessageBuilder } from "../wire/builder.ts";
import {
  AF_BRIDGE,
  NDA_DST,
  NDA_LLADDR,
  NEIGHBOUR_BYTES,
  NLM_F_CREATE,
  NLM_F_DUMP,
  NLM_F_REPLACE,
  NTF_SELF,
  NUD_PERMANENT,
  RTM_DELNEIGH,
  RTM_GETNEIGH,
  RTM_NEWNEIGH,
} from "../wire/constants.ts";
import type { MessageCursor } from "../wire/reader.ts";

/** `bridge fdb show dev DEV` */
export function encodeFdbDump(builder: MessageBuilder, sequence: number, index: number): void {
  builder.begin(RTM_GETNEIGH, NLM_F_DUMP, sequence);
  builder.u32(AF_BRIDGE);
  builder.u32(index);
  builder.u32(0);
  builder.end();
}

/**
 * `bridge fdb replace|delete MAC dst DST self permanent dev DEV`. Replacing moves a unicast MAC to the new
 * destination; deleting takes only the entry with that destination. Throws Fault `NETLINK_BAD_OBJECT`.
 */
export function encodeFdb(
  builder: MessageBuilder,
  sequence: number,
  action: "put" | "delete",
  object: FdbObject,
  index: number,
): void {
  const put = action === "put";
  builder.begin(put ? RTM_NEWNEIGH : RTM_DELNEIGH, put ? NLM_F_CREATE | NLM_F_REPLACE : 0, sequence);
  builder.u32(AF_BRIDGE);
  builder.u32(index);
  builder.u16(put ? NUD_PERMANENT : 0);
  builder.u8(NTF_SELF);
  builder.u8(0);
  builder.attributeMac(NDA_LLADDR, object.mac);
  builder.attributeAddress(NDA_DST, object.dst);
  builder.end();
}

/** RTM_NEWNEIGH or RTM_DELNEIGH of AF_BRIDGE; undefined for other families and for a device that is gone. */
export function decodeFdb(message: MessageCursor, names: DeviceNames): FdbState | undefined {
  message.require(NEIGHBOUR_BYTES);
  const { view, start } = message;
  if (view.getUint8(start) !== AF_BRIDGE) return undefined;
  let mac: string | undefined;
  let dst: string | undefined;
  const attributes = message.attributes(NEIGHBOUR_BYTES);
  while (attributes.next()) {
    if (attributes.type === NDA_LLADDR) mac = attributes.mac();
    else if (attributes.type === NDA_DST) dst = attributes.address();
  }
  const dev = names.nameOf(view.getUint32(start + 4, true));
  if (mac === undefined || dev === undefined) return undefined;
  const state = view.getUint16(start + 8, true);
  return dst === undefined ? { dev, mac, state } : { dev, mac, dst, state };
}
