import { parseIPv4At } from "../net/ipv4.ts";
import type { BatchObject } from "../netlink/kernel.ts";
import type { KernelObject, NexthopObject, RouteObject, SettingObject } from "../netlink/objects.ts";

/** First metric of the range over which routes are spread where the kernel has no nexthop objects. */
const SPREAD_FIRST_METRIC = 1000;
const SPREAD = 256;

/** What the kernel at hand can do, and which nexthop ids are not ours to write. */
export interface Realisation {
  readonly nexthopObjects: boolean;
  readonly foreignNexthops: ReadonlySet<number>;
}

/**
 * The kernel writes that make a backend's object real. An IPv4 route through a gateway becomes a nexthop object and
 * a route that points to it: plain routes with distinct gateways on one device cost the kernel O(n²) (fib_info hash
 * ignores the gateway). Without nexthop objects such routes are spread over 256 metrics, which has the same effect.
 */
export function realise(
  object: Exclude<KernelObject, SettingObject>,
  how: Realisation,
): readonly BatchObject[] {
  if (object.kind !== "route" || object.via === undefined || object.dst.includes(":")) return [object];
  const id = nexthopId(object);
  if (id === undefined) return [object];
  if (!how.nexthopObjects) {
    if (object.metric !== undefined && object.metric > 0) return [object];
    return [{ ...object, metric: SPREAD_FIRST_METRIC + ((id >>> 8) % SPREAD) }];
  }
  // A source hint belongs to the route and cannot be combined with the derivable id of a shared nexthop.
  if (object.src !== undefined || how.foreignNexthops.has(id)) return [object];
  const { dev, via, onlink, dst, metric } = object;
  return [
    { kind: "nexthop", id, dev, via, ...(onlink ? { onlink } : {}) },
    { kind: "nexthop-route", dst, nexthop: id, ...(metric === undefined ? {} : { metric }) },
  ];
}

/** Realised objects without those nexthops whose id somebody else has taken: their routes carry the gateway then. */
export function giveWay(
  objects: readonly BatchObject[],
  foreignNexthops: ReadonlySet<number>,
): readonly BatchObject[] {
  const lost = new Map<number, NexthopObject>();
  for (const object of objects) {
    if (object.kind === "nexthop" && foreignNexthops.has(object.id)) lost.set(object.id, object);
  }
  if (lost.size === 0) return objects;
  return objects.flatMap((object): readonly BatchObject[] => {
    if (object.kind === "nexthop") return lost.has(object.id) ? [] : [object];
    const nexthop = object.kind === "nexthop-route" ? lost.get(object.nexthop) : undefined;
    if (object.kind !== "nexthop-route" || !nexthop) return [object];
    const { dev, via, onlink } = nexthop;
    const { dst, metric } = object;
    return [
      {
        kind: "route",
        dst,
        dev,
        via,
        ...(onlink ? { onlink } : {}),
        ...(metric === undefined ? {} : { metric }),
      },
    ];
  });
}

/** Id of a route's nexthop object: the base address of its destination, unique since leases never overlap. */
function nexthopId(route: RouteObject): number | undefined {
  const id = parseIPv4At(route.dst, 0, route.dst.indexOf("/"));
  return id === 0 ? undefined : id;
}
