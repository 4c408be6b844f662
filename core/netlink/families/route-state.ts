import type { DeviceNames } from "../devices.ts";
import { malformedFault } from "../faults.ts";
import type { RouteState } from "../objects.ts";
import {
  AF_INET,
  AF_INET6,
  ROUTE_BYTES,
  RT_TABLE_MAIN,
  RTA_DST,
  RTA_GATEWAY,
  RTA_MULTIPATH,
  RTA_NH_ID,
  RTA_OIF,
  RTA_PREFSRC,
  RTA_PRIORITY,
  RTA_TABLE,
  RTA_VIA,
  RTM_F_CLONED,
  RTNEXTHOP_BYTES,
  RTNH_F_DEAD,
  RTNH_F_LINKDOWN,
  RTNH_F_ONLINK,
} from "../wire/constants.ts";
import type { AttributeCursor, MessageCursor } from "../wire/reader.ts";

const UNUSABLE = RTNH_F_DEAD | RTNH_F_LINKDOWN;
/** Bytes of RTA_VIA before the address: its family. */
const VIA_FAMILY_BYTES = 2;

interface Hop {
  readonly dev: string;
  readonly via?: string;
}

/** RTPROT_* of a route message, told without reading the rest (struct rtmsg, rtm_protocol). */
export function protocolOf(message: MessageCursor): number {
  message.require(ROUTE_BYTES);
  return message.view.getUint8(message.start + 5);
}

/** RTM_NEWROUTE or RTM_DELROUTE; undefined for other tables, other families and cached exceptions. */
export function decodeRoute(message: MessageCursor, names: DeviceNames): RouteState | undefined {
  message.require(ROUTE_BYTES);
  const { view, start } = message;
  const rawFamily = view.getUint8(start);
  if (rawFamily !== AF_INET && rawFamily !== AF_INET6) return undefined;
  const flags = view.getUint32(start + 8, true);
  if ((flags & RTM_F_CLONED) !== 0) return undefined;
  const family = rawFamily === AF_INET ? 4 : 6;
  let table = view.getUint8(start + 4);
  let address = family === 4 ? "0.0.0.0" : "::";
  let dev: string | undefined;
  let via: string | undefined;
  let src: string | undefined;
  let nexthop: number | undefined;
  let hops: readonly Hop[] | undefined;
  let metric = 0;
  let dead = (flags & UNUSABLE) !== 0;
  const attributes = message.attributes(ROUTE_BYTES);
  while (attributes.next()) {
    switch (attributes.type) {
      case RTA_TABLE:
        table = attributes.u32();
        break;
      case RTA_DST:
        address = attributes.address();
        break;
      case RTA_OIF:
        dev = names.nameOf(attributes.u32());
        break;
      case RTA_GATEWAY:
        via = attributes.address();
        break;
      case RTA_VIA:
        via = attributes.address(VIA_FAMILY_BYTES);
        break;
      case RTA_PRIORITY:
        metric = attributes.u32();
        break;
      case RTA_PREFSRC:
        src = attributes.address();
        break;
      case RTA_NH_ID:
        nexthop = attributes.u32();
        break;
      case RTA_MULTIPATH: {
        const legs = decodeHops(message, attributes, names);
        hops = legs.hops;
        dead = legs.dead;
        break;
      }
    }
  }
  if (table !== RT_TABLE_MAIN) return undefined;
  return {
    family,
    dst: `${address}/${view.getUint8(start + 1)}`,
    ...(dev === undefined ? {} : { dev }),
    ...(via === undefined ? {} : { via }),
    onlink: (flags & RTNH_F_ONLINK) !== 0,
    metric,
    protocol: protocolOf(message),
    type: view.getUint8(start + 7),
    ...(src === undefined ? {} : { src }),
    scope: view.getUint8(start + 6),
    ...(nexthop === undefined ? {} : { nexthop }),
    ...(hops === undefined ? {} : { hops }),
    dead,
  };
}

/** The legs of RTA_MULTIPATH, an array of struct rtnexthop; `dead` when the kernel uses none of them. */
function decodeHops(
  message: MessageCursor,
  attribute: AttributeCursor,
  names: DeviceNames,
): { hops: Hop[]; dead: boolean } {
  const { view } = message;
  const hops: Hop[] = [];
  let alive = 0;
  const end = attribute.at + attribute.length;
  for (let at = attribute.at; at + RTNEXTHOP_BYTES <= end; ) {
    const length = view.getUint16(at, true);
    if (length < RTNEXTHOP_BYTES || at + length > end) throw malformedFault(`route leg of ${length} bytes`);
    if ((view.getUint8(at + 2) & UNUSABLE) === 0) alive++;
    const dev = names.nameOf(view.getUint32(at + 4, true));
    let via: string | undefined;
    const attributes = attribute.slice(at + RTNEXTHOP_BYTES, at + length);
    while (attributes.next()) {
      if (attributes.type === RTA_GATEWAY) via = attributes.address();
      else if (attributes.type === RTA_VIA) via = attributes.address(VIA_FAMILY_BYTES);
    }
    if (dev !== undefined) hops.push(via === undefined ? { dev } : { dev, via });
    at += (length + 3) & ~3;
  }
  return { hops, dead: alive === 0 };
}

/** The answer to `ip route get`: RTM_NEWROUTE with the cloned flag; undefined when it names no device. */
export function decodeRouteGet(
  message: MessageCursor,
  names: DeviceNames,
): { dev: string; via?: string; src?: string } | undefined {
  let dev: string | undefined;
  let via: string | undefined;
  let src: string | undefined;
  const attributes = message.attributes(ROUTE_BYTES);
  while (attributes.next()) {
    if (attributes.type === RTA_OIF) dev = names.nameOf(attributes.u32());
    else if (attributes.type === RTA_GATEWAY) via = attributes.address();
    else if (attributes.type === RTA_VIA) via = attributes.address(VIA_FAMILY_BYTES);
    else if (attributes.type === RTA_PREFSRC) src = attributes.address();
  }
  if (dev === undefined) return undefined;
  return { dev, ...(via === undefined ? {} : { via }), ...(src === undefined ? {} : { src }) };
}
