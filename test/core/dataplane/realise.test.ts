import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { giveWay, realise } from "../../../core/dataplane/realise.ts";
import type { BatchObject } from "../../../core/netlink/kernel.ts";
import type { KernelObject, RouteObject, SettingObject } from "../../../core/netlink/objects.ts";

const route: RouteObject = {
  kind: "route",
  dst: "10.5.72.0/24",
  dev: "flannel.1",
  via: "10.5.72.0",
  onlink: true,
};
/** 10.5.72.0 as a number. */
const ID = 0x0a054800;
const modern = { nexthopObjects: true, foreignNexthops: new Set<number>() };
const old = { nexthopObjects: false, foreignNexthops: new Set<number>() };

describe("with nexthop objects", () => {
  test("an IPv4 route through a gateway becomes a nexthop and a route that points to it", () => {
    expect(realise(route, modern)).toEqual([
      { kind: "nexthop", id: ID, dev: "flannel.1", via: "10.5.72.0", onlink: true },
      { kind: "nexthop-route", dst: "10.5.72.0/24", nexthop: ID },
    ]);
  });

  test("the metric stays with the route, and no onlink is made up", () => {
    const { onlink: _, ...plain } = route;
    expect(realise({ ...plain, metric: 50 }, modern)).toEqual([
      { kind: "nexthop", id: ID, dev: "flannel.1", via: "10.5.72.0" },
      { kind: "nexthop-route", dst: "10.5.72.0/24", nexthop: ID, metric: 50 },
    ]);
  });

  test.each<[string, Exclude<KernelObject, SettingObject>]>([
    ["IPv6", { kind: "route", dst: "fd00:5:72::/64", dev: "flannel-v6.1", via: "fd00:5:72::", onlink: true }],
    ["a route without gateway", { kind: "route", dst: "10.5.72.0/24", dev: "flannel.1" }],
    ["a route with a source hint", { ...route, src: "10.5.1.0" }],
    ["the default route, whose base is no id", { ...route, dst: "0.0.0.0/0" }],
    ["an address", { kind: "address", dev: "flannel.1", address: "10.5.1.0/32" }],
    ["a neighbour", { kind: "neighbour", dev: "flannel.1", ip: "10.5.72.0", mac: "02:00:00:00:00:01" }],
    ["a forwarding entry", { kind: "fdb", dev: "flannel.1", mac: "02:00:00:00:00:01", dst: "192.0.2.2" }],
  ])("%s is written as it is", (_, object) => {
    expect(realise(object, modern)).toEqual([object]);
  });

  test("a nexthop id that somebody else uses is left to them", () => {
    expect(realise(route, { ...modern, foreignNexthops: new Set([ID]) })).toEqual([route]);
  });

  test("ids of different subnets differ and fit 32 bits", () => {
    const ids = Array.from({ length: 65_536 }, (_, at) => {
      const [nexthop] = realise({ ...route, dst: `240.${at >> 8}.${at & 255}.0/24` }, modern);
      return nexthop?.kind === "nexthop" ? nexthop.id : 0;
    });
    expect(new Set(ids).size).toBe(65_536);
    expect(ids.every((id) => Number.isInteger(id) && id > 0 && id < 2 ** 32)).toBe(true);
  });
});

describe("without nexthop objects", () => {
  test("routes are spread over metrics by their subnet, the same one each time", () => {
    const metrics = Array.from({ length: 1024 }, (_, at) => {
      const written = realise({ ...route, dst: `10.${at >> 8}.${at & 255}.0/24` }, old);
      expect(written).toHaveLength(1);
      return (written[0] as RouteObject).metric ?? 0;
    });
    expect(new Set(metrics).size).toBe(256);
    expect(Math.min(...metrics)).toBe(1000);
    expect(Math.max(...metrics)).toBe(1255);
    expect(realise(route, old)).toEqual([{ ...route, metric: 1072 }]);
  });

  test("a metric of the backend's own is kept", () => {
    expect(realise({ ...route, metric: 50 }, old)).toEqual([{ ...route, metric: 50 }]);
  });

  test("IPv6 and routes without gateway are not spread", () => {
    const onLink: RouteObject = { kind: "route", dst: "10.5.72.0/24", dev: "eth0" };
    const ipv6: RouteObject = { kind: "route", dst: "fd00:5::/64", dev: "eth0", via: "fd00::1" };
    expect([...realise(onLink, old), ...realise(ipv6, old)]).toEqual([onLink, ipv6]);
  });
});

describe("giving way to a foreign nexthop", () => {
  test("makes of what was realised what would have been realised with the id known", () => {
    fc.assert(
      fc.property(
        fc.option(fc.integer({ min: 1, max: 99 }), { nil: undefined }),
        fc.boolean(),
        (metric, onlink) => {
          const { onlink: _, ...plain } = route;
          const wanted = {
            ...plain,
            ...(metric === undefined ? {} : { metric }),
            ...(onlink ? { onlink } : {}),
          };
          const foreign = new Set([ID]);
          expect(giveWay(realise(wanted, modern), foreign)).toEqual(
            realise(wanted, { ...modern, foreignNexthops: foreign }),
          );
        },
      ),
    );
  });

  test("leaves everything else alone", () => {
    const objects: BatchObject[] = [
      { kind: "neighbour", dev: "flannel.1", ip: "10.5.72.0", mac: "02:00:00:00:00:01" },
      ...realise(route, modern),
      ...realise({ ...route, dst: "10.5.73.0/24" }, modern),
    ];
    expect(giveWay(objects, new Set([5]))).toBe(objects);
    expect(giveWay(objects, new Set([ID]))).toEqual([objects[0]!, route, objects[3]!, objects[4]!]);
  });
});
