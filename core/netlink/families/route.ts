import { badObjectFault } from "../faults.ts";
import { ROUTE_PROTOCOL } from "../kernel.ts";
import type { NexthopRouteObject, RouteObject } from "../objects.ts";
import { familyOf, type MessageBuilder, prefixLengthOf, slashOf } from "../wire/builder.ts";
import {
  AF_INET,
  AF_INET6,
  IPV6_DEFAULT_METRIC,
  NLM_F_CREATE,
  NLM_F_DUMP,
  NLM_F_REPLACE,
  RT_SCOPE_LINK,
  RT_SCOPE_NOWHERE,
  RT_SCOPE_UNIVERSE,
  RT_TABLE_MAIN,
  RTA_DST,
  RTA_GATEWAY,
  RTA_NH_ID,
  RTA_OIF,
  RTA_PREFSRC,
  RTA_PRIORITY,
  RTM_DELROUTE,
  RTM_GETROUTE,
  RTM_NEWROUTE,
  RTN_BLACKHOLE,
  RTN_UNICAST,
  RTN_UNSPEC,
  RTNH_F_ONLINK,
} from "../wire/constants.ts";

/** `ip -4|-6 route show table main [dev DEV] [proto PROTOCOL]`; 0 for `index` or `protocol` means any. */
export function encodeRouteDump(
  builder: MessageBuilder,
  sequence: number,
  family: 4 | 6,
  index: number,
  protocol: number,
): void {
  builder.begin(RTM_GETROUTE, NLM_F_DUMP, sequence);
  builder.u32(family === 4 ? AF_INET : AF_INET6);
  builder.u8(RT_TABLE_MAIN);
  builder.u8(protocol);
  builder.u8(0);
  builder.u8(RTN_UNSPEC);
  builder.u32(0);
  if (index !== 0) builder.attributeU32(RTA_OIF, index);
  builder.end();
}

/** `ip -4|-6 route get ADDRESS`. Throws Fault `NETLINK_BAD_OBJECT`. */
export function encodeRouteGet(builder: MessageBuilder, sequence: number, address: string): void {
  const family = familyOf(address);
  builder.begin(RTM_GETROUTE, 0, sequence);
  builder.u8(family === 4 ? AF_INET : AF_INET6);
  builder.u8(family === 4 ? 32 : 128);
  builder.u16(0);
  builder.u32(0);
  builder.u32(0);
  builder.attributeAddress(RTA_DST, address, family);
  builder.end();
}

/**
 * `ip route replace|delete DST [via VIA] dev DEV [onlink] [metric METRIC] [src SRC] proto 140`, or
 * `ip route replace|delete blackhole DST [metric METRIC] proto 140`; `index` is that of the device. A delete takes
 * only a route that agrees in all of destination, device, gateway, metric (an absent one is the family's default for
 * IPv6, but any for IPv4: the wire cannot say 0) and protocol. Throws Fault `NETLINK_BAD_OBJECT`.
 */
export function encodeRoute(
  builder: MessageBuilder,
  sequence: number,
  action: "put" | "delete",
  object: RouteObject,
  index: number,
): void {
  const { via, src } = object;
  const put = action === "put";
  const protocol = put ? ROUTE_PROTOCOL : (object.protocol ?? ROUTE_PROTOCOL);
  if (object.blackhole) {
    beginRoute(builder, sequence, put, object, RT_SCOPE_UNIVERSE, protocol, RTN_BLACKHOLE, 0);
    builder.end();
    return;
  }
  const scope = via === undefined && familyOf(object.dst) === 4 ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE;
  const flags = put && object.onlink === true ? RTNH_F_ONLINK : 0;
  const type = put ? RTN_UNICAST : RTN_UNSPEC;
  const family = beginRoute(builder, sequence, put, object, scope, protocol, type, flags);
  if (via !== undefined) builder.attributeAddress(RTA_GATEWAY, via, family);
  builder.attributeU32(RTA_OIF, index);
  if (src !== undefined) builder.attributeAddress(RTA_PREFSRC, src, family);
  builder.end();
}

/** `ip route replace|delete DST nhid ID [metric METRIC] proto 140`. Throws Fault `NETLINK_BAD_OBJECT`. */
export function encodeNexthopRoute(
  builder: MessageBuilder,
  sequence: number,
  action: "put" | "delete",
  object: NexthopRouteObject,
): void {
  const put = action === "put";
  const type = put ? RTN_UNICAST : RTN_UNSPEC;
  beginRoute(builder, sequence, put, object, RT_SCOPE_UNIVERSE, ROUTE_PROTOCOL, type, 0);
  builder.attributeU32(RTA_NH_ID, object.nexthop);
  builder.end();
}

/** struct rtmsg, destination and metric: what all kinds of route share. */
function beginRoute(
  builder: MessageBuilder,
  sequence: number,
  put: boolean,
  object: { readonly dst: string; readonly metric?: number },
  scope: number,
  protocol: number,
  type: number,
  flags: number,
): 4 | 6 {
  const { dst } = object;
  const family = familyOf(dst);
  const slash = slashOf(dst);
  const length = prefixLengthOf(dst, slash, family);
  builder.begin(put ? RTM_NEWROUTE : RTM_DELROUTE, put ? NLM_F_CREATE | NLM_F_REPLACE : 0, sequence);
  builder.u8(family === 4 ? AF_INET : AF_INET6);
  builder.u8(length);
  builder.u16(0);
  builder.u8(RT_TABLE_MAIN);
  builder.u8(protocol);
  builder.u8(put ? scope : RT_SCOPE_NOWHERE);
  builder.u8(type);
  builder.u32(flags);
  builder.attributeAddress(RTA_DST, dst, family, slash);
  const metric = object.metric ?? 0;
  if (metric < 0 || metric > 0xffffffff) throw badObjectFault("a metric", String(metric));
  if (metric !== 0) builder.attributeU32(RTA_PRIORITY, metric);
  else if (!put && family === 6) builder.attributeU32(RTA_PRIORITY, IPV6_DEFAULT_METRIC);
  return family;
}
