import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { ROUTE_PROTOCOL } from "../../../core/netlink/kernel.ts";
import type { RouteObject } from "../../../core/netlink/objects.ts";
import { del, IMPLEMENTATIONS, openHost, put } from "./host.ts";

setDefaultTimeout(30_000);

const METRIC = 4_278_198_272;
/** RTN_BLACKHOLE */
const BLACKHOLE = 6;

describe.each(IMPLEMENTATIONS)("blackholes through %s", (_, open) => {
  test.each([
    [4, "10.5.1.0/24", "10.5.1.1/24", "10.5.1.7"],
    [6, "fd00:5:1::/64", "fd00:5:1::1/64", "fd00:5:1::7"],
  ] as const)("of IPv%i lose to a connected route, in either order", async (family, dst, gateway, pod) => {
    await using host = await openHost(open);
    const { kernel, ns } = host;
    const route: RouteObject = { kind: "route", blackhole: true, dst, dev: "", metric: METRIC };
    const ours = async () =>
      (await kernel.routes(family, { protocol: ROUTE_PROTOCOL })).map(({ dst, type, metric }) => ({
        dst,
        type,
        metric,
      }));
    await ns.ip("link add cni0 up type bridge");

    expect(await kernel.apply(put(route, route))).toEqual([]);
    expect(await ours()).toEqual([{ dst, type: BLACKHOLE, metric: METRIC }]);
    expect(await kernel.routeGet(pod)).toBeUndefined();
    await ns.ip(`address add ${gateway} dev cni0 ${family === 6 ? "nodad" : ""}`);
    expect(await kernel.routeGet(pod)).toMatchObject({ dev: "cni0" });

    expect(await kernel.apply(del(route, route))).toEqual([]);
    expect(await ours()).toEqual([]);
    expect(await kernel.routeGet(pod)).toMatchObject({ dev: "cni0" });

    expect(await kernel.apply(put(route))).toEqual([]);
    expect(await ours()).toHaveLength(1);
    expect(await kernel.routeGet(pod)).toMatchObject({ dev: "cni0" });
  });

  test("of somebody else go only when their protocol is given, and take no other route with them", async () => {
    await using host = await openHost(open);
    const { kernel, ns } = host;
    await ns.ipBatch(
      "route add blackhole 10.5.1.0/24",
      "route add blackhole fd00:5:1::/64",
      "route add 10.5.2.0/24 via 192.0.2.3 metric 7 proto 140",
    );
    const theirs = ["10.5.1.0/24", "fd00:5:1::/64"].map(
      (dst): RouteObject => ({ kind: "route", blackhole: true, dst, dev: "" }),
    );
    const left = async () =>
      [...(await kernel.routes(4)), ...(await kernel.routes(6))].filter(({ type }) => type === BLACKHOLE)
        .length;
    expect(await kernel.apply(del(...theirs))).toEqual([]);
    expect(await left()).toBe(2);
    expect(await kernel.apply(del(...theirs.map((route) => ({ ...route, protocol: 3 }))))).toEqual([]);
    expect(await left()).toBe(0);
    const unicast: RouteObject = { kind: "route", blackhole: true, dst: "10.5.2.0/24", dev: "", metric: 7 };
    expect(await kernel.apply(del(unicast))).toEqual([]);
    expect(await kernel.routes(4, { protocol: ROUTE_PROTOCOL })).toHaveLength(1);
  });
});
