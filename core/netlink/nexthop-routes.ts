import type { NexthopState, RouteState } from "./objects.ts";

/**
 * Fills in device and gateway of nexthop routes that came without: with net.ipv4.nexthop_compat_mode=0 the kernel
 * leaves them out. The nexthops are asked for only when a route needs them.
 */
export async function resolveNexthops(
  routes: RouteState[],
  list: () => Promise<readonly NexthopState[]>,
): Promise<RouteState[]> {
  if (!routes.some(isBare)) return routes;
  const nexthops = new Map((await list()).map((nexthop) => [nexthop.id, nexthop]));
  return routes.map((route) => {
    const nexthop = isBare(route) ? nexthops.get(route.nexthop ?? 0) : undefined;
    if (!nexthop) return route;
    const { dev, via, onlink } = nexthop;
    return { ...route, onlink, ...(dev === undefined ? {} : { dev }), ...(via === undefined ? {} : { via }) };
  });
}

function isBare(route: RouteState): boolean {
  return route.nexthop !== undefined && route.dev === undefined && route.hops === undefined;
}

/** Whether a route, or a leg of it, goes out of the device. */
export function leadsTo(route: RouteState, dev: string): boolean {
  return route.dev === dev || route.hops?.some((hop) => hop.dev === dev) === true;
}
