import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { type Expectation, isDisturbance } from "../../../core/dataplane/disturbance.ts";
import { WantedState } from "../../../core/dataplane/wanted.ts";
import { parsePrefix } from "../../../core/net/prefix.ts";
import { type BatchObject, type Notice, ROUTE_PROTOCOL } from "../../../core/netlink/kernel.ts";
import type { LinkState } from "../../../core/netlink/objects.ts";
import { routeState } from "./model.ts";

const PERMANENT = 0x80;
const REACHABLE = 0x02;
const MAC = "02:00:00:00:00:02";
/** What a vxlan peer and the own lease make: the wanted state of most tests. */
const OBJECTS: readonly BatchObject[] = [
  { kind: "address", dev: "flannel.1", address: "10.5.1.0/32" },
  { kind: "neighbour", dev: "flannel.1", ip: "10.5.2.0", mac: MAC },
  { kind: "fdb", dev: "flannel.1", mac: MAC, dst: "192.0.2.2" },
  { kind: "nexthop", id: 7, dev: "flannel.1", via: "10.5.2.0", onlink: true },
  { kind: "nexthop-route", dst: "10.5.2.0/24", nexthop: 7 },
  { kind: "route", dst: "fd00:5:2::/64", dev: "flannel-v6.1", via: "fd00:5:2::", onlink: true },
];

function expecting(change: Partial<Expectation> = {}, objects = OBJECTS): Expectation {
  const wanted = new WantedState();
  wanted.set("all", objects);
  return {
    get: (identity) => wanted.get(identity),
    devices: new Set(["flannel.1", "flannel-v6.1"]),
    external: "eth0",
    networks: ["10.5.0.0/16", "fd00:5::/32"].flatMap((text) => parsePrefix(text) ?? []),
    usesRoutes: false,
    learning: false,
    ...change,
  };
}

/** What the kernel tells after it took an object. */
function echo(object: BatchObject, action: "put" | "delete" = "put"): Notice {
  switch (object.kind) {
    case "address": {
      const address = { scope: 0, deprecated: false, temporary: false, tentative: false, permanent: true };
      const family = object.address.includes(":") ? 6 : 4;
      return {
        kind: "address",
        action,
        address: { dev: object.dev, family, address: object.address, ...address },
      };
    }
    case "neighbour":
      return {
        kind: "neighbour",
        action,
        neighbour: { dev: object.dev, ip: object.ip, mac: object.mac, state: PERMANENT },
      };
    case "fdb":
      return {
        kind: "fdb",
        action,
        fdb: { dev: object.dev, mac: object.mac, dst: object.dst, state: PERMANENT },
      };
    case "nexthop": {
      const { id, dev, via, onlink = false } = object;
      return { kind: "nexthop", action, nexthop: { id, dev, via, onlink, protocol: ROUTE_PROTOCOL } };
    }
    case "nexthop-route":
      return {
        kind: "route",
        action,
        route: routeState({
          dst: object.dst,
          nexthop: object.nexthop,
          dev: "flannel.1",
          via: "10.5.2.0",
          onlink: true,
        }),
      };
    case "route": {
      const { kind: _, protocol = ROUTE_PROTOCOL, ...rest } = object;
      const family = object.dst.includes(":") ? 6 : 4;
      return {
        kind: "route",
        action,
        route: routeState({ ...rest, family, protocol, metric: family === 6 ? 1024 : 0 }),
      };
    }
  }
}

const link: LinkState = { name: "eth0", index: 2, mtu: 1500, up: true, running: true, loopback: false };
const route = (state: Parameters<typeof routeState>[0], action: "put" | "delete" = "put"): Notice => ({
  kind: "route",
  action,
  route: routeState(state),
});

describe("the echo of our own writes", () => {
  test.each(OBJECTS.map((object) => [object.kind, object] as const))("of a %s is none", (_, object) => {
    expect(isDisturbance(echo(object), expecting())).toBe(false);
  });

  test.each(OBJECTS.map((object) => [object.kind, object] as const))(
    "of removing a %s that is not wanted any more is none",
    (_, object) => {
      expect(isDisturbance(echo(object, "delete"), expecting({}, []))).toBe(false);
    },
  );

  test("a wanted object that is written over and over never is one", () => {
    const dst = fc.constantFrom("192.0.2.1", "192.0.2.2");
    fc.assert(
      fc.property(fc.array(dst, { minLength: 1 }), (destinations) => {
        const wanted = new WantedState();
        for (const destination of destinations) {
          const object: BatchObject = { kind: "fdb", dev: "flannel.1", mac: MAC, dst: destination };
          wanted.set("peer", [object]);
          const expected = expecting({ get: (identity) => wanted.get(identity) });
          expect(isDisturbance(echo(object), expected)).toBe(false);
        }
      }),
    );
  });

  test("the connected route that comes with our IPv6 address is none", () => {
    const own = { dst: "fd00:5:1::/128", dev: "flannel-v6.1", protocol: 2, metric: 256, family: 6 } as const;
    expect(isDisturbance(route(own), expecting())).toBe(false);
  });
});

describe("somebody else's change is one:", () => {
  test.each(OBJECTS.map((object) => [object.kind, object] as const))("a %s removed", (_, object) => {
    expect(isDisturbance(echo(object, "delete"), expecting())).toBe(true);
  });

  const changed: readonly (readonly [string, Notice])[] = [
    ["a MAC moved", echo({ kind: "fdb", dev: "flannel.1", mac: MAC, dst: "192.0.2.9" })],
    ["a MAC added", echo({ kind: "fdb", dev: "flannel.1", mac: "02:00:00:00:00:09", dst: "192.0.2.9" })],
    [
      "a neighbour rewritten",
      echo({ kind: "neighbour", dev: "flannel.1", ip: "10.5.2.0", mac: "02:00:00:00:00:09" }),
    ],
    ["a neighbour added", echo({ kind: "neighbour", dev: "flannel.1", ip: "10.5.9.0", mac: MAC })],
    [
      "a neighbour made dynamic",
      {
        kind: "neighbour",
        action: "put",
        neighbour: { dev: "flannel.1", ip: "10.5.2.0", mac: MAC, state: REACHABLE },
      },
    ],
    [
      "a learned entry",
      {
        kind: "fdb",
        action: "put",
        fdb: { dev: "flannel.1", mac: MAC, dst: "192.0.2.66", state: REACHABLE },
      },
    ],
    ["an address of ours added", echo({ kind: "address", dev: "flannel.1", address: "10.5.9.0/32" })],
    ["a nexthop led elsewhere", echo({ kind: "nexthop", id: 7, dev: "eth0", via: "192.0.2.9" })],
    [
      "a nexthop taken over",
      {
        kind: "nexthop",
        action: "put",
        nexthop: { id: 7, dev: "flannel.1", via: "10.5.2.0", onlink: true, protocol: 3 },
      },
    ],
    ["a route led elsewhere", route({ dst: "10.5.2.0/24", dev: "eth0", via: "192.0.2.9", protocol: 3 })],
    [
      "a route written over by the same one with another mark",
      route({ dst: "10.5.2.0/24", nexthop: 7, protocol: 3 }),
    ],
    [
      "a route to an unwanted subnet on our device",
      route({ dst: "10.5.9.0/24", dev: "flannel.1", via: "10.5.9.0", protocol: 3 }),
    ],
    ["our device changed", { kind: "link", action: "put", link: { ...link, name: "flannel.1", mtu: 1400 } }],
    ["our device deleted", { kind: "link", action: "delete", link: { ...link, name: "flannel-v6.1" } }],
    ["the underlay changed", { kind: "link", action: "put", link: { ...link, mtu: 1400 } }],
    [
      "an underlay address removed, with which routes go silently",
      echo({ kind: "address", dev: "eth0", address: "192.0.2.1/24" }, "delete"),
    ],
  ];
  test.each(changed)("%s", (_, notice) => {
    expect(isDisturbance(notice, expecting())).toBe(true);
  });
});

describe("what is not ours is none:", () => {
  const foreign: readonly (readonly [string, Notice])[] = [
    ["another device", { kind: "link", action: "put", link: { ...link, name: "eth1" } }],
    ["a container's address", echo({ kind: "address", dev: "cni0", address: "10.5.1.1/24" })],
    [
      "a link-local address on our device",
      echo({ kind: "address", dev: "flannel.1", address: "fe80::1/64" }),
    ],
    [
      "an address outside of our networks on our device",
      echo({ kind: "address", dev: "flannel.1", address: "172.30.0.1/24" }),
    ],
    ["a neighbour on the underlay", echo({ kind: "neighbour", dev: "eth0", ip: "10.5.2.0", mac: MAC })],
    [
      "a neighbour the kernel tried by itself",
      { kind: "neighbour", action: "put", neighbour: { dev: "flannel.1", ip: "10.5.2.7", state: 0x20 } },
    ],
    ["an entry on a bridge", echo({ kind: "fdb", dev: "cni0", mac: MAC, dst: "192.0.2.2" })],
    [
      "an entry without a remote",
      { kind: "fdb", action: "put", fdb: { dev: "flannel.1", mac: MAC, state: PERMANENT } },
    ],
    ["a nexthop of another id", echo({ kind: "nexthop", id: 8, dev: "eth0", via: "192.0.2.9" })],
    ["a route elsewhere", route({ dst: "172.30.0.0/16", dev: "eth0", via: "192.0.2.9", protocol: 3 })],
    [
      "a route of another network over our device",
      route({ dst: "172.30.0.0/16", dev: "flannel.1", via: "10.5.2.0", protocol: 4 }),
    ],
    [
      "a route to an unwanted subnet on another device",
      route({ dst: "10.5.9.0/24", dev: "eth0", via: "192.0.2.9", protocol: 3 }),
    ],
    [
      "somebody's route of our destination removed",
      route({ dst: "10.5.2.0/24", dev: "eth0", protocol: 3 }, "delete"),
    ],
    [
      "somebody's route of our destination with another metric",
      route({ dst: "10.5.2.0/24", dev: "eth0", protocol: 3, metric: 50 }),
    ],
  ];
  test.each(foreign)("%s", (_, notice) => {
    expect(isDisturbance(notice, expecting())).toBe(false);
  });
});

describe("what depends on the backend", () => {
  test("foreign routes matter to direct routing, ours do not", () => {
    const expected = expecting({ usesRoutes: true });
    const underlay = { dst: "198.51.100.0/24", dev: "eth0", via: "192.0.2.254", protocol: 3 };
    expect(isDisturbance(route(underlay), expected)).toBe(true);
    expect(isDisturbance(route(underlay, "delete"), expected)).toBe(true);
    expect(isDisturbance(route({ ...underlay, protocol: ROUTE_PROTOCOL }), expected)).toBe(false);
  });

  test("learned entries are let alone where learning is on, permanent ones are not", () => {
    const expected = expecting({ learning: true });
    const learned = { dev: "flannel.1", mac: "02:00:00:00:00:09", dst: "192.0.2.9" };
    expect(
      isDisturbance({ kind: "fdb", action: "put", fdb: { ...learned, state: REACHABLE } }, expected),
    ).toBe(false);
    expect(
      isDisturbance({ kind: "fdb", action: "put", fdb: { ...learned, state: PERMANENT } }, expected),
    ).toBe(true);
  });
});
