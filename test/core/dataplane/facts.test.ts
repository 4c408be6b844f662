import { describe, expect, test } from "bun:test";
import { foreignRoutes } from "../../../core/dataplane/facts.ts";
import type { RouteState } from "../../../core/netlink/objects.ts";
import { type ForeignRoute, type HostFacts, isOnLink, nextHopTo } from "../../../plugins/sdk/facts.ts";
import { routeState } from "./model.ts";

const ours = new Set(["flannel.1"]);
const foreign = (...routes: Partial<RouteState>[]) =>
  foreignRoutes(
    routes.map((route) => routeState({ protocol: 3, ...route })),
    ours,
  );

describe("foreign routes", () => {
  test("are those of others that the kernel uses", () => {
    expect(
      foreign(
        { dst: "192.0.2.0/24", dev: "eth0", protocol: 2 },
        { dst: "10.5.2.0/24", dev: "eth0", via: "192.0.2.2", protocol: 140 },
        { dst: "10.5.3.0/24", dev: "flannel.1", via: "10.5.3.0" },
        { dst: "10.8.0.0/16", type: 6 },
        { dst: "10.9.0.0/16", dev: "eth1", dead: true },
      ),
    ).toEqual([{ dst: "192.0.2.0/24", dev: "eth0" }]);
  });

  test("come in the order of their metric, equal ones as the kernel lists them", () => {
    expect(
      foreign(
        { dst: "0.0.0.0/0", dev: "wlan0", via: "198.51.100.1", metric: 600 },
        { dst: "0.0.0.0/0", dev: "eth0", via: "192.0.2.254", metric: 100 },
        { dst: "10.0.0.0/8", dev: "eth1", metric: 100 },
      ).map((route) => route.dev),
    ).toEqual(["eth0", "eth1", "wlan0"]);
  });

  test("with several legs count leg by leg", () => {
    const hops = [{ dev: "eth0", via: "192.0.2.254" }, { dev: "eth1" }];
    expect(foreign({ dst: "0.0.0.0/0", hops })).toEqual([
      { dst: "0.0.0.0/0", dev: "eth0", via: "192.0.2.254" },
      { dst: "0.0.0.0/0", dev: "eth1" },
    ]);
  });
});

describe("direct routing", () => {
  const routes: readonly ForeignRoute[] = [
    { dst: "0.0.0.0/0", dev: "eth0", via: "192.0.2.254" },
    { dst: "192.0.2.0/24", dev: "eth0" },
    { dst: "192.0.2.128/25", dev: "eth0", via: "192.0.2.253" },
    { dst: "fd00:db8::/64", dev: "eth0" },
    { dst: "::/0", dev: "eth0", via: "fd00:db8::254" },
    { dst: "not a prefix", dev: "eth9" },
  ];
  const facts: HostFacts = { external: { name: "eth0", index: 2, mtu: 1500 }, links: {}, routes };

  test.each([
    ["192.0.2.7", "eth0"],
    ["192.0.2.200", undefined],
    ["198.51.100.1", undefined],
    ["fd00:db8::7", "eth0"],
    ["fd00:db8:1::7", undefined],
    ["", undefined],
    ["garbage", undefined],
  ])("%s is on the link of %p", (address, dev) => {
    expect(isOnLink(facts, address)).toBe(dev);
  });

  test("follows the longest prefix, the first one of equals", () => {
    expect(nextHopTo(facts, "192.0.2.200")).toEqual({
      dst: "192.0.2.128/25",
      dev: "eth0",
      via: "192.0.2.253",
    });
    const twice = [
      { dst: "0.0.0.0/0", dev: "eth0", via: "192.0.2.1" },
      { dst: "0.0.0.0/0", dev: "eth1", via: "192.0.2.2" },
    ];
    expect(nextHopTo({ ...facts, routes: twice }, "1.1.1.1")?.dev).toBe("eth0");
  });

  test("nothing leads anywhere without routes", () => {
    expect(nextHopTo({ ...facts, routes: [] }, "192.0.2.7")).toBeUndefined();
  });

  test("asks frozen facts, and the same again, and gets the same", () => {
    const frozen = { ...facts, routes: Object.freeze(routes.map((route) => Object.freeze({ ...route }))) };
    expect([isOnLink(frozen, "192.0.2.7"), isOnLink(frozen, "192.0.2.7")]).toEqual(["eth0", "eth0"]);
  });
});
