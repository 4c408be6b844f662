import type { Subnets } from "../lease/lease.ts";
import type { RouteObject } from "../netlink/objects.ts";

/**
 * Metric of the blackholes: any other route to the same prefix wins, so that a bridge's connected route (metric 0 for
 * IPv4, 256 for IPv6) carries the packets of local pods whether it comes before or after. This very number is the
 * kernel documentation's for a last resort (networking/vrf.rst): routing daemons of the FRR family read the upper
 * byte as the administrative distance 255, which they never take a route from.
 */
export const BLACKHOLE_METRIC = 4_278_198_272;

/**
 * `ip route replace blackhole SUBNET metric 4278198272` for each own subnet (`--ip-blackhole-route`): packets to
 * addresses of this node that no pod has are dropped here, instead of travelling to the default gateway and back
 * until their time to live ends. Pure; the metric is where local pods win.
 */
export function blackholeRoutes(subnets: Subnets): readonly RouteObject[] {
  return [subnets.ipv4, subnets.ipv6].flatMap((dst): RouteObject[] =>
    dst === undefined ? [] : [{ kind: "route", blackhole: true, dst, dev: "", metric: BLACKHOLE_METRIC }],
  );
}
