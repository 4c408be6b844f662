import type { DeviceNames } from "../devices.ts";
import { ROUTE_PROTOCOL } from "../kernel.ts";
import type { NexthopObject, NexthopState } from "../objects.ts";
import { familyOf, type MessageBuilder } from "../wire/builder.ts";
import {
  AF_INET,
  AF_INET6,
  AF_UNSPEC,
  NEXTHOP_BYTES,
  NHA_GATEWAY,
  NHA_ID,
  NHA_OIF,
  NLM_F_CREATE,
  NLM_F_DUMP,
  NLM_F_REPLACE,
  RTM_DELNEXTHOP,
  RTM_GETNEXTHOP,
  RTM_NEWNEXTHOP,
  RTNH_F_ONLINK,
} from "../wire/constants.ts";
import type { MessageCursor } from "../wire/reader.ts";

/** `ip nexthop show` */
export function encodeNexthopDump(builder: MessageBuilder, sequence: number): void {
  builder.begin(RTM_GETNEXTHOP, NLM_F_DUMP, sequence);
  builder.u32(AF_UNSPEC);
  builder.u32(0);
  builder.end();
}

/** `ip nexthop get id 0`: always refused, but only a kernel without nexthop objects says EOPNOTSUPP. */
export function encodeNexthopQuery(builder: MessageBuilder, sequence: number): void {
  builder.begin(RTM_GETNEXTHOP, 0, sequence);
  builder.u32(AF_UNSPEC);
  builder.u32(0);
  builder.attributeU32(NHA_ID, 0);
  builder.end();
}

/**
 * `ip nexthop replace id ID via VIA dev DEV [onlink] proto 140`, `ip nexthop delete id ID` (the kernel compares
 * nothing but the id then). Throws Fault `NETLINK_BAD_OBJECT`.
 */
export function encodeNexthop(
  builder: MessageBuilder,
  sequence: number,
  action: "put" | "delete",
  object: NexthopObject,
  index: number,
): void {
  if (action === "delete") {
    builder.begin(RTM_DELNEXTHOP, 0, sequence);
    builder.u32(AF_UNSPEC);
    builder.u32(0);
    builder.attributeU32(NHA_ID, object.id);
    builder.end();
    return;
  }
  const family = familyOf(object.via);
  builder.begin(RTM_NEWNEXTHOP, NLM_F_CREATE | NLM_F_REPLACE, sequence);
  builder.u8(family === 4 ? AF_INET : AF_INET6);
  builder.u8(0);
  builder.u8(ROUTE_PROTOCOL);
  builder.u8(0);
  builder.u32(object.onlink ? RTNH_F_ONLINK : 0);
  builder.attributeU32(NHA_ID, object.id);
  builder.attributeU32(NHA_OIF, index);
  builder.attributeAddress(NHA_GATEWAY, object.via, family);
  builder.end();
}

/** RTM_NEWNEXTHOP or RTM_DELNEXTHOP. */
export function decodeNexthop(message: MessageCursor, names: DeviceNames): NexthopState {
  message.require(NEXTHOP_BYTES);
  const { view, start } = message;
  let id = 0;
  let dev: string | undefined;
  let via: string | undefined;
  const attributes = message.attributes(NEXTHOP_BYTES);
  while (attributes.next()) {
    if (attributes.type === NHA_ID) id = attributes.u32();
    else if (attributes.type === NHA_OIF) dev = names.nameOf(attributes.u32());
    else if (attributes.type === NHA_GATEWAY) via = attributes.address();
  }
  return {
    id,
    ...(dev === undefined ? {} : { dev }),
    ...(via === undefined ? {} : { via }),
    onlink: (view.getUint32(start + 4, true) & RTNH_F_ONLINK) !== 0,
    protocol: view.getUint8(start + 2),
  };
}
