import type { DeviceNames } from "../devices.ts";
import type { NeighbourObject, NeighbourState } from "../objects.ts";
import { familyOf, type MessageBuilder } from "../wire/builder.ts";
import {
  AF_INET,
  AF_INET6,
  NDA_DST,
  NDA_IFINDEX,
  NDA_LLADDR,
  NEIGHBOUR_BYTES,
  NLM_F_CREATE,
  NLM_F_DUMP,
  NLM_F_REPLACE,
  NUD_NOARP,
  NUD_PERMANENT,
  RTM_DELNEIGH,
  RTM_GETNEIGH,
  RTM_NEWNEIGH,
  RTN_UNICAST,
} from "../wire/constants.ts";
import type { MessageCursor } from "../wire/reader.ts";

/** `ip -4|-6 neighbour show dev DEV` */
export function encodeNeighbourDump(
  builder: MessageBuilder,
  sequence: number,
  family: 4 | 6,
  index: number,
): void {
  builder.begin(RTM_GETNEIGH, NLM_F_DUMP, sequence);
  builder.u32(family === 4 ? AF_INET : AF_INET6);
  builder.u32(0);
  builder.u32(0);
  builder.attributeU32(NDA_IFINDEX, index);
  builder.end();
}

/** `ip neighbour replace|delete IP lladdr MAC nud permanent dev DEV`. Throws Fault `NETLINK_BAD_OBJECT`. */
export function encodeNeighbour(
  builder: MessageBuilder,
  sequence: number,
  action: "put" | "delete",
  object: NeighbourObject,
  index: number,
): void {
  const put = action === "put";
  const family = familyOf(object.ip);
  builder.begin(put ? RTM_NEWNEIGH : RTM_DELNEIGH, put ? NLM_F_CREATE | NLM_F_REPLACE : 0, sequence);
  builder.u32(family === 4 ? AF_INET : AF_INET6);
  builder.u32(index);
  builder.u16(put ? NUD_PERMANENT : 0);
  builder.u8(0);
  builder.u8(RTN_UNICAST);
  builder.attributeAddress(NDA_DST, object.ip, family);
  if (put) builder.attributeMac(NDA_LLADDR, object.mac);
  builder.end();
}

/**
 * RTM_NEWNEIGH or RTM_DELNEIGH of an IP family; undefined for other families, for a device that is gone and, as in
 * `ip neighbour show`, for the NOARP entries the kernel keeps for multicast and for entries without a state.
 */
export function decodeNeighbour(message: MessageCursor, names: DeviceNames): NeighbourState | undefined {
  message.require(NEIGHBOUR_BYTES);
  const { view, start } = message;
  const family = view.getUint8(start);
  if (family !== AF_INET && family !== AF_INET6) return undefined;
  const state = view.getUint16(start + 8, true);
  // A removed entry may have lost its state before the notice was written.
  if (message.type !== RTM_DELNEIGH && (state === 0 || (state & NUD_NOARP) !== 0)) return undefined;
  let ip: string | undefined;
  let mac: string | undefined;
  const attributes = message.attributes(NEIGHBOUR_BYTES);
  while (attributes.next()) {
    if (attributes.type === NDA_DST) ip = attributes.address();
    else if (attributes.type === NDA_LLADDR) mac = attributes.mac();
  }
  const dev = names.nameOf(view.getUint32(start + 4, true));
  if (ip === undefined || dev === undefined) return undefined;
  return mac === undefined ? { dev, ip, state } : { dev, ip, mac, state };
}
