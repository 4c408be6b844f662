import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { isOursOnDevice, routeObject } from "../../../core/dataplane/actual.ts";
import { equalObjects } from "../../../core/dataplane/identity.ts";
import { parsePrefix } from "../../../core/net/prefix.ts";
import type { BatchObject } from "../../../core/netlink/kernel.ts";
import type { RouteObject } from "../../../core/netlink/objects.ts";
import { anyObject, routeState } from "./model.ts";

describe("the object that would have made a route", () => {
  test("is a nexthop route where ours points to a nexthop, whatever the kernel filled in", () => {
    const shown = routeState({ nexthop: 7, dev: "flannel.1", via: "10.5.1.0", onlink: true });
    expect(routeObject(shown)).toEqual({ kind: "nexthop-route", dst: "10.5.1.0/24", nexthop: 7 });
    expect(routeObject({ ...shown, metric: 50 })).toEqual({
      kind: "nexthop-route",
      dst: "10.5.1.0/24",
      nexthop: 7,
      metric: 50,
    });
  });

  test("keeps all that tells one plain route from another", () => {
    const shown = routeState({ dev: "eth0", via: "192.0.2.2", onlink: true, src: "192.0.2.1", metric: 9 });
    expect(routeObject(shown)).toEqual({
      kind: "route",
      dst: "10.5.1.0/24",
      dev: "eth0",
      via: "192.0.2.2",
      onlink: true,
      src: "192.0.2.1",
      metric: 9,
    });
  });

  test("of another protocol carries its mark, so that it equals none of ours and can be deleted", () => {
    const upstream = routeState({ dev: "flannel.1", via: "10.5.1.0", onlink: true, protocol: 3 });
    const object = routeObject(upstream);
    expect(object).toEqual({
      kind: "route",
      dst: "10.5.1.0/24",
      dev: "flannel.1",
      via: "10.5.1.0",
      onlink: true,
      protocol: 3,
    });
    expect(equalObjects(object, routeObject({ ...upstream, protocol: 140 }))).toBe(false);
  });

  test("is a blackhole without device, on whatever device the kernel shows it", () => {
    const blackhole: RouteObject = {
      kind: "route",
      blackhole: true,
      dst: "fd00:5::/32",
      dev: "",
      metric: 4096,
    };
    const shown = routeState({ family: 6, dst: "fd00:5::/32", dev: "lo", type: 6, metric: 4096 });
    expect(routeObject(shown)).toEqual(blackhole);
    expect(equalObjects(routeObject(shown), { ...blackhole })).toBe(true);
    const { blackhole: _, ...unicast } = blackhole;
    expect(equalObjects(routeObject(shown), unicast)).toBe(false);
  });

  test("equals the object it was made from", () => {
    const written = anyObject.filter((object) => object.kind === "route" || object.kind === "nexthop-route");
    fc.assert(
      fc.property(written, (object: BatchObject) => {
        if (object.kind !== "route" && object.kind !== "nexthop-route") return;
        const { kind, metric, ...rest } = object;
        const shown = metric || (object.dst.includes(":") ? 1024 : 0);
        const state = routeState({
          ...rest,
          metric: shown,
          ...(kind === "nexthop-route" ? { dev: "flannel.1" } : {}),
        });
        expect(equalObjects(routeObject(state), object)).toBe(true);
      }),
    );
  });
});

describe("a route on our device", () => {
  const networks = ["10.5.0.0/16", "fd00:5::/32"].flatMap((text) => parsePrefix(text) ?? []);
  test.each<[string, Parameters<typeof routeState>[0], boolean]>([
    ["with our mark", {}, true],
    ["with our mark of a network we do not know any more", { dst: "10.9.1.0/24" }, true],
    ["as upstream writes them (proto boot)", { protocol: 3, via: "10.5.1.0", onlink: true }, true],
    ["that an operator led over it to another network", { dst: "172.30.0.0/16", protocol: 4 }, false],
    ["the default route", { dst: "0.0.0.0/0", protocol: 3 }, false],
    ["that the kernel made for an address", { dst: "10.5.0.0/16", protocol: 2 }, false],
    ["with several legs", { protocol: 3, hops: [{ dev: "flannel.1" }, { dev: "eth0" }] }, false],
    ["that is a blackhole", { protocol: 3, type: 6 }, false],
  ])("%s", (_, state, ours) => {
    expect(isOursOnDevice(routeState({ dev: "flannel.1", ...state }), networks)).toBe(ours);
  });
});
