import type { RouteState } from "../../netlink/objects.ts";

/** RTN_UNICAST (linux/rtnetlink.h). */
const UNICAST = 1;

/**
 * Devices of the default routes of a family, best (lowest metric) first; the legs of a multipath default count in
 * their order, dead routes do not.
 */
export function defaultDevice(routes: readonly RouteState[], family: 4 | 6): readonly string[] {
  const any = family === 4 ? "0.0.0.0/0" : "::/0";
  const defaults = routes
    .filter((route) => route.family === family && route.dst === any && route.type === UNICAST && !route.dead)
    .toSorted((a, b) => a.metric - b.metric);
  const devices = defaults.flatMap((route) =>
    route.dev === undefined ? (route.hops ?? []).map((hop) => hop.dev) : [route.dev],
  );
  return [...new Set(devices)];
}
