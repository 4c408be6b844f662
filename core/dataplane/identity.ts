import type { BatchObject } from "../netlink/kernel.ts";

/** Metric the kernel gives an IPv6 route without one (IP6_RT_PRIO_USER, linux/ipv6_route.h). */
export const IPV6_DEFAULT_METRIC = 1024;

/**
 * What makes two objects "the same one" for the kernel: writing an object replaces the one of equal identity.
 * Routes are one kind here whether they carry their next hop or point to a nexthop object.
 */
export function identityOf(object: BatchObject): string {
  switch (object.kind) {
    case "address":
      return `address ${object.dev} ${object.address}`;
    case "neighbour":
      return `neighbour ${object.dev} ${object.ip}`;
    case "fdb":
      return `fdb ${object.dev} ${object.mac}`;
    case "nexthop":
      return nexthopIdentity(object.id);
    case "route":
    case "nexthop-route":
      return routeIdentity(object.dst, object.metric);
  }
}

/** Identity of a nexthop object. */
export function nexthopIdentity(id: number): string {
  return `nexthop ${id}`;
}

/** Identity of a route: destination and metric (table and TOS are always main and 0 here). */
export function routeIdentity(dst: string, metric: number | undefined): string {
  return `route ${dst} ${effectiveMetric(dst, metric)}`;
}

/** The metric the kernel shows for a route written with `metric`. */
export function effectiveMetric(dst: string, metric: number | undefined): number {
  if (metric !== undefined && metric > 0) return metric;
  return dst.includes(":") ? IPV6_DEFAULT_METRIC : 0;
}

/** Whether two objects of one identity also have the same content. */
export function equalObjects(a: BatchObject, b: BatchObject): boolean {
  switch (a.kind) {
    case "address":
      return b.kind === "address";
    case "neighbour":
      return b.kind === "neighbour" && a.mac === b.mac;
    case "fdb":
      return b.kind === "fdb" && a.dst === b.dst;
    case "nexthop":
      return (
        b.kind === "nexthop" && a.dev === b.dev && a.via === b.via && Boolean(a.onlink) === Boolean(b.onlink)
      );
    case "nexthop-route":
      return b.kind === "nexthop-route" && a.nexthop === b.nexthop;
    case "route":
      return (
        b.kind === "route" &&
        a.blackhole === b.blackhole &&
        a.dev === b.dev &&
        a.via === b.via &&
        a.src === b.src &&
        a.protocol === b.protocol &&
        Boolean(a.onlink) === Boolean(b.onlink)
      );
  }
}
