import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { ROUTE_PROTOCOL } from "../../../core/netlink/kernel.ts";
import type { RouteObject } from "../../../core/netlink/objects.ts";
import { addFlannel, del, IMPLEMENTATIONS, openHost, put } from "./host.ts";

setDefaultTimeout(30_000);

const plain = { onlink: false, metric: 0, protocol: ROUTE_PROTOCOL, type: 1, scope: 0, dead: false };

describe.each(IMPLEMENTATIONS)("routes through %s", (_, open) => {
  const viaFlannel: RouteObject = {
    kind: "route",
    dst: "10.5.2.0/24",
    dev: "flannel.1",
    via: "10.5.2.0",
    onlink: true,
  };
  const viaHost: RouteObject = { kind: "route", dst: "10.5.3.0/24", dev: "eth0", via: "192.0.2.3" };
  const onDevice: RouteObject = { kind: "route", dst: "10.5.0.0/16", dev: "flannel.1" };

  test("are added as `ip route replace` adds them", async () => {
    await using host = await openHost(open);
    await addFlannel(host.kernel);
    const withSource: RouteObject = {
      kind: "route",
      dst: "10.5.4.0/24",
      dev: "eth0",
      src: "192.0.2.1",
      metric: 7,
    };
    expect(await host.kernel.apply(put(viaFlannel, viaHost, onDevice, withSource))).toEqual([]);
    const shown = await host.ns.json(
      "ip",
      "-j",
      "-N",
      "-d",
      "route",
      "show",
      "table",
      "main",
      "proto",
      "140",
    );
    expect(Object.fromEntries(shown.map((route) => [route.dst, route]))).toMatchObject({
      "10.5.2.0/24": { gateway: "10.5.2.0", dev: "flannel.1", flags: ["onlink"], scope: "0", type: "1" },
      "10.5.3.0/24": { gateway: "192.0.2.3", dev: "eth0", flags: [], scope: "0" },
      "10.5.0.0/16": { dev: "flannel.1", scope: "253" },
      "10.5.4.0/24": { dev: "eth0", prefsrc: "192.0.2.1", metric: 7, scope: "253" },
    });
    const routes = await host.kernel.routes(4, { protocol: ROUTE_PROTOCOL });
    expect(Object.fromEntries(routes.map((route) => [route.dst, route]))).toEqual({
      "10.5.2.0/24": {
        ...plain,
        family: 4,
        dst: "10.5.2.0/24",
        dev: "flannel.1",
        via: "10.5.2.0",
        onlink: true,
      },
      "10.5.3.0/24": { ...plain, family: 4, dst: "10.5.3.0/24", dev: "eth0", via: "192.0.2.3" },
      "10.5.0.0/16": { ...plain, family: 4, dst: "10.5.0.0/16", dev: "flannel.1", scope: 253 },
      "10.5.4.0/24": {
        ...plain,
        family: 4,
        dst: "10.5.4.0/24",
        dev: "eth0",
        src: "192.0.2.1",
        metric: 7,
        scope: 253,
      },
    });
  });

  test("are replaced in place and filtered by device and protocol", async () => {
    await using host = await openHost(open);
    await addFlannel(host.kernel);
    await host.ns.ip("route add 10.5.3.0/24 via 192.0.2.9");
    await host.ns.ip("route add 10.9.0.0/16 via 192.0.2.9 proto static");
    expect(await host.kernel.apply(put(viaHost, viaFlannel))).toEqual([]);
    expect(await host.kernel.apply(put({ ...viaFlannel, via: "10.5.7.0" }))).toEqual([]);
    const dsts = async (filter: { dev?: string; protocol?: number }) =>
      (await host.kernel.routes(4, filter))
        .map((route) => `${route.dst} ${route.via} ${route.protocol}`)
        .sort();
    expect(await dsts({ dev: "flannel.1" })).toEqual(["10.5.2.0/24 10.5.7.0 140"]);
    expect(await dsts({ dev: "eth0", protocol: ROUTE_PROTOCOL })).toEqual(["10.5.3.0/24 192.0.2.3 140"]);
    expect(await dsts({ protocol: 4 })).toEqual(["10.9.0.0/16 192.0.2.9 4"]);
    expect(await dsts({ dev: "nosuch" })).toEqual([]);
  });

  test("are deleted only when they agree in everything that was said", async () => {
    await using host = await openHost(open);
    await addFlannel(host.kernel);
    expect(await host.kernel.apply(put(viaHost, { ...viaHost, metric: 50 }))).toEqual([]);
    const left = async () =>
      (await host.kernel.routes(4, { protocol: ROUTE_PROTOCOL })).map((route) => route.metric);
    const others = [
      { ...viaHost, via: "192.0.2.4" },
      { ...viaHost, dev: "flannel.1" },
      { ...viaHost, metric: 51 },
    ];
    expect(await host.kernel.apply(del(...others))).toEqual([]);
    expect(await left()).toEqual([0, 50]);
    expect(await host.kernel.apply(del({ ...viaHost, metric: 50 }))).toEqual([]);
    expect(await left()).toEqual([0]);
    expect(await host.kernel.apply(del(viaHost, viaHost))).toEqual([]);
    expect(await left()).toEqual([]);
  });

  test("of somebody else are deleted only when their protocol is given", async () => {
    await using host = await openHost(open);
    await host.ns.ip("route add 10.5.3.0/24 via 192.0.2.3 dev eth0");
    await host.ns.ip("route add fd00:5::/64 via 2001:db8::3 dev eth0");
    const ipv6: RouteObject = { kind: "route", dst: "fd00:5::/64", dev: "eth0", via: "2001:db8::3" };
    const left = async () => {
      const [four, six] = await Promise.all([host.kernel.routes(4), host.kernel.routes(6)]);
      return [...four, ...six].filter((route) => route.protocol === 3).length;
    };
    expect(await host.kernel.apply(del(viaHost, ipv6))).toEqual([]);
    expect(await left()).toBe(2);
    expect(await host.kernel.apply(del({ ...viaHost, protocol: 3 }, { ...ipv6, protocol: 3 }))).toEqual([]);
    expect(await left()).toBe(0);
  });

  test("of IPv6 are added, replaced and deleted", async () => {
    await using host = await openHost(open);
    await addFlannel(host.kernel);
    const dev = "flannel.1";
    const onlink: RouteObject = { kind: "route", dst: "fd00:5:2::/64", dev, via: "fd00:5:2::", onlink: true };
    const direct: RouteObject = {
      kind: "route",
      dst: "fd00:5:3::/64",
      dev: "eth0",
      via: "2001:db8::3",
      metric: 9,
    };
    const link: RouteObject = { kind: "route", dst: "fd00:5::/48", dev };
    expect(await host.kernel.apply(put(onlink, direct, link))).toEqual([]);
    const shown = await host.ns.json(
      "ip",
      "-6",
      "-j",
      "-N",
      "route",
      "show",
      "table",
      "main",
      "proto",
      "140",
    );
    expect(Object.fromEntries(shown.map((route) => [route.dst, route]))).toMatchObject({
      "fd00:5:2::/64": { gateway: "fd00:5:2::", dev, metric: 1024, flags: ["onlink"] },
      "fd00:5:3::/64": { gateway: "2001:db8::3", dev: "eth0", metric: 9 },
      "fd00:5::/48": { dev, metric: 1024 },
    });
    const list = async () => {
      const routes = await host.kernel.routes(6, { protocol: ROUTE_PROTOCOL });
      return Object.fromEntries(routes.map((route) => [route.dst, route]));
    };
    expect(await list()).toEqual({
      "fd00:5:2::/64": {
        ...plain,
        family: 6,
        dst: onlink.dst,
        dev,
        via: "fd00:5:2::",
        onlink: true,
        metric: 1024,
      },
      "fd00:5:3::/64": { ...plain, family: 6, dst: direct.dst, dev: "eth0", via: "2001:db8::3", metric: 9 },
      "fd00:5::/48": { ...plain, family: 6, dst: link.dst, dev, metric: 1024 },
    });
    expect(await host.kernel.apply(put({ ...onlink, via: "fd00:5:2::9" }))).toEqual([]);
    expect((await list())["fd00:5:2::/64"]?.via).toBe("fd00:5:2::9");
    // Without a metric the default of the family is meant, not any.
    const { metric, ...unsaid } = direct;
    expect(await host.kernel.apply(del(unsaid))).toEqual([]);
    expect(metric === 9 && (await list())["fd00:5:3::/64"]).toBeTruthy();
    const all = del({ ...onlink, via: "fd00:5:2::9" }, direct, link);
    expect(await host.kernel.apply(all)).toEqual([]);
    expect(await host.kernel.apply(all)).toEqual([]);
    expect(await list()).toEqual({});
  });

  test("of every shape are read: default, host, multipath, blackhole, dead, of the main table only", async () => {
    await using host = await openHost(open);
    await host.ns.ipBatch(
      "route add default via 192.0.2.254 metric 100",
      "route add 198.51.100.9 via 192.0.2.9",
      "route add 198.51.100.0/24 nexthop via 192.0.2.8 dev eth0 nexthop dev lo",
      "route add blackhole 203.0.113.0/24",
      "route add 10.77.0.0/16 via 192.0.2.7 table 77",
      "route add 10.78.0.0/16 via inet6 2001:db8::5 dev eth0",
      "route add ::/0 via 2001:db8::fe",
      "route add fd00:9::9 via 2001:db8::9",
      "route add fd00:8::/64 nexthop via 2001:db8::8 dev eth0 nexthop via 2001:db8::7 dev eth0",
      "route add blackhole fd00:7::/64",
      "link set far0 down",
    );
    const byDst = async (family: 4 | 6) =>
      Object.fromEntries((await host.kernel.routes(family)).map((route) => [route.dst, route]));
    const four = await byDst(4);
    expect(four).toMatchObject({
      "0.0.0.0/0": { dev: "eth0", via: "192.0.2.254", metric: 100, dead: true, protocol: 3 },
      "198.51.100.9/32": { dev: "eth0", via: "192.0.2.9" },
      "198.51.100.0/24": { hops: [{ dev: "eth0", via: "192.0.2.8" }, { dev: "lo" }], dead: false },
      "203.0.113.0/24": { type: 6 },
      "10.78.0.0/16": { dev: "eth0", via: "2001:db8::5" },
      "192.0.2.0/24": { dev: "eth0", protocol: 2, scope: 253, src: "192.0.2.1" },
    });
    expect(four["198.51.100.0/24"]?.dev).toBeUndefined();
    expect(four["203.0.113.0/24"]?.dev).toBeUndefined();
    expect(four["10.77.0.0/16"]).toBeUndefined();
    expect(four["127.0.0.0/8"]).toBeUndefined();
    expect(await byDst(6)).toMatchObject({
      "::/0": { dev: "eth0", via: "2001:db8::fe", metric: 1024 },
      "fd00:9::9/128": { via: "2001:db8::9" },
      "fd00:8::/64": {
        hops: [
          { dev: "eth0", via: "2001:db8::8" },
          { dev: "eth0", via: "2001:db8::7" },
        ],
      },
      "fd00:7::/64": { type: 6 },
    });
  });

  test("are looked up", async () => {
    await using host = await openHost(open);
    await host.ns.ip("route add 203.0.113.0/24 via 192.0.2.9");
    await host.ns.ip("route add blackhole 198.51.100.0/24");
    await host.ns.ip("route add unreachable 198.51.101.0/24");
    const { kernel } = host;
    expect(await kernel.routeGet("192.0.2.7")).toEqual({ dev: "eth0", src: "192.0.2.1" });
    expect(await kernel.routeGet("203.0.113.7")).toEqual({ dev: "eth0", via: "192.0.2.9", src: "192.0.2.1" });
    expect(await kernel.routeGet("2001:db8::7")).toEqual({ dev: "eth0", src: "2001:db8::1" });
    expect(await kernel.routeGet("192.0.2.1")).toMatchObject({ dev: "lo" });
    for (const address of ["8.8.8.8", "198.51.100.1", "198.51.101.1", "fd99::1"]) {
      expect(await kernel.routeGet(address)).toBeUndefined();
    }
    await expect(kernel.routeGet("no address")).rejects.toMatchObject({ code: "NETLINK_BAD_OBJECT" });
  });
});
