import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { ROUTE_PROTOCOL } from "../../../core/netlink/kernel.ts";
import type {
  AddressObject,
  FdbObject,
  NeighbourObject,
  NexthopObject,
  NexthopRouteObject,
} from "../../../core/netlink/objects.ts";
import { addFlannel, del, IMPLEMENTATIONS, openHost, put } from "./host.ts";

setDefaultTimeout(30_000);

const MAC = "0a:1b:2c:3d:4e:5f";
const OTHER_MAC = "0a:1b:2c:3d:4e:60";

describe.each(IMPLEMENTATIONS)("addresses through %s", (_, open) => {
  const address = (text: string): AddressObject => ({ kind: "address", dev: "flannel.1", address: text });

  test("are added, found existing, deleted and found gone", async () => {
    await using host = await openHost(open);
    await addFlannel(host.kernel);
    const both = [address("10.5.72.0/32"), address("fd00:10:5::/128")];
    expect(await host.kernel.apply(put(...both))).toEqual([]);
    expect(await host.kernel.apply(put(...both))).toEqual([]);
    const [shown] = await host.ns.json("ip", "-j", "address", "show", "dev", "flannel.1", "scope", "global");
    // Some versions print an empty record for each address left out.
    expect(shown.addr_info.filter((info) => info.local)).toMatchObject([
      { family: "inet", local: "10.5.72.0", prefixlen: 32 },
      { family: "inet6", local: "fd00:10:5::", prefixlen: 128 },
    ]);
    const kept = { scope: 0, deprecated: false, temporary: false, tentative: false, permanent: true };
    const global = async () => (await host.kernel.addresses("flannel.1")).filter(({ scope }) => scope === 0);
    expect(await global()).toEqual([
      { dev: "flannel.1", family: 4, address: "10.5.72.0/32", ...kept },
      { dev: "flannel.1", family: 6, address: "fd00:10:5::/128", ...kept },
    ]);
    expect(await host.kernel.apply(del(...both))).toEqual([]);
    expect(await host.kernel.apply(del(...both))).toEqual([]);
    expect(await global()).toEqual([]);
  });

  test("are listed for all devices, with scope, lifetime and peer", async () => {
    await using host = await openHost(open);
    await host.ns.ip("address add 198.51.100.1 peer 198.51.100.2/32 dev eth0");
    await host.ns.ip("address add 203.0.113.7/24 dev eth0 valid_lft 500 preferred_lft 0");
    const all = await host.kernel.addresses();
    expect(all).toContainEqual(expect.objectContaining({ dev: "lo", address: "127.0.0.1/8", scope: 254 }));
    expect(all).toContainEqual(
      expect.objectContaining({ dev: "lo", address: "::1/128", scope: 254, family: 6 }),
    );
    expect(all).toContainEqual(
      expect.objectContaining({ dev: "eth0", address: "192.0.2.1/24", permanent: true }),
    );
    expect(all).toContainEqual(expect.objectContaining({ dev: "eth0", address: "198.51.100.1/32" }));
    expect(all).toContainEqual(
      expect.objectContaining({ address: "203.0.113.7/24", permanent: false, deprecated: true }),
    );
    expect(await host.kernel.addresses("nosuch")).toEqual([]);
  });
});

describe.each(IMPLEMENTATIONS)("neighbours through %s", (_, open) => {
  const neighbour = (ip: string, mac = MAC): NeighbourObject => ({
    kind: "neighbour",
    dev: "flannel.1",
    ip,
    mac,
  });

  test("are added, replaced and deleted", async () => {
    await using host = await openHost(open);
    await addFlannel(host.kernel);
    expect(await host.kernel.apply(put(neighbour("10.5.1.0"), neighbour("fd00:10:5:1::")))).toEqual([]);
    expect(await host.kernel.apply(put(neighbour("10.5.1.0", OTHER_MAC)))).toEqual([]);
    expect<unknown>(await host.ns.json("ip", "-j", "-4", "neighbour", "show", "dev", "flannel.1")).toEqual([
      { dst: "10.5.1.0", lladdr: OTHER_MAC, state: ["PERMANENT"] },
    ]);
    const state = { dev: "flannel.1", state: 0x80 };
    expect(await host.kernel.neighbours(4, "flannel.1")).toEqual([
      { ...state, ip: "10.5.1.0", mac: OTHER_MAC },
    ]);
    expect(await host.kernel.neighbours(6, "flannel.1")).toEqual([
      { ...state, ip: "fd00:10:5:1::", mac: MAC },
    ]);
    const both = del(neighbour("10.5.1.0"), neighbour("fd00:10:5:1::"));
    expect(await host.kernel.apply(both)).toEqual([]);
    expect(await host.kernel.apply(both)).toEqual([]);
    expect(await host.kernel.neighbours(4, "flannel.1")).toEqual([]);
  });

  test("of other devices and of no device are not listed", async () => {
    await using host = await openHost(open);
    await addFlannel(host.kernel);
    await host.ns.ip(`neighbour add 192.0.2.9 lladdr ${MAC} dev eth0 nud stale`);
    expect(await host.kernel.neighbours(4, "flannel.1")).toEqual([]);
    expect(await host.kernel.neighbours(4, "eth0")).toEqual([
      { dev: "eth0", ip: "192.0.2.9", mac: MAC, state: 4 },
    ]);
    expect(await host.kernel.neighbours(4, "nosuch")).toEqual([]);
  });
});

describe.each(IMPLEMENTATIONS)("FDB entries through %s", (_, open) => {
  const entry = (dst: string, mac = MAC): FdbObject => ({ kind: "fdb", dev: "flannel.1", mac, dst });

  test("are added, moved and deleted", async () => {
    await using host = await openHost(open);
    await addFlannel(host.kernel);
    expect(await host.kernel.apply(put(entry("192.0.2.7"), entry("192.0.2.8", OTHER_MAC)))).toEqual([]);
    expect(await host.kernel.apply(put(entry("192.0.2.9")))).toEqual([]);
    const shown: readonly unknown[] = await host.ns.json("bridge", "-j", "fdb", "show", "dev", "flannel.1");
    expect(shown).toHaveLength(2);
    expect(shown).toContainEqual({ mac: MAC, dst: "192.0.2.9", flags: ["self"], state: "permanent" });
    const fdb = await host.kernel.fdb("flannel.1");
    expect(fdb).toHaveLength(2);
    expect(fdb).toContainEqual({ dev: "flannel.1", mac: MAC, dst: "192.0.2.9", state: 0x80 });
    // A delete names the destination: the entry that moved away stays.
    expect(await host.kernel.apply(del(entry("192.0.2.7")))).toEqual([]);
    expect(await host.kernel.fdb("flannel.1")).toHaveLength(2);
    expect(await host.kernel.apply(del(entry("192.0.2.9"), entry("192.0.2.8", OTHER_MAC)))).toEqual([]);
    expect(await host.kernel.fdb("flannel.1")).toEqual([]);
    expect(await host.kernel.fdb("nosuch")).toEqual([]);
  });

  test("lead to IPv6 destinations too", async () => {
    await using host = await openHost(open);
    const vxlan = { vni: 1, underlay: "eth0", local: "2001:db8::1", port: 8472 };
    await host.kernel.createLink({ name: "flannel-v6.1", type: "vxlan", mtu: 1430, mac: MAC, vxlan });
    const object: FdbObject = { kind: "fdb", dev: "flannel-v6.1", mac: OTHER_MAC, dst: "2001:db8::7" };
    expect(await host.kernel.apply(put(object))).toEqual([]);
    expect(await host.kernel.fdb("flannel-v6.1")).toEqual([
      { dev: "flannel-v6.1", mac: OTHER_MAC, dst: "2001:db8::7", state: 0x80 },
    ]);
  });
});

describe.each(IMPLEMENTATIONS)("nexthops through %s", (_, open) => {
  const nexthop: NexthopObject = {
    kind: "nexthop",
    id: 655_618,
    dev: "flannel.1",
    via: "10.5.2.0",
    onlink: true,
  };
  const route: NexthopRouteObject = { kind: "nexthop-route", dst: "10.5.2.0/24", nexthop: 655_618 };

  test("are added, replaced and deleted", async () => {
    await using host = await openHost(open);
    await addFlannel(host.kernel);
    expect(host.kernel.nexthopObjects).toBe(true);
    expect(await host.kernel.nexthops()).toEqual([]);
    expect(await host.kernel.apply(put(nexthop))).toEqual([]);
    expect(await host.kernel.apply(put({ ...nexthop, via: "10.5.3.0" }))).toEqual([]);
    expect(await host.ns.json("ip", "-j", "-N", "nexthop", "show")).toMatchObject([
      { id: 655_618, gateway: "10.5.3.0", dev: "flannel.1", protocol: "140", flags: ["onlink"] },
    ]);
    const state = { id: 655_618, dev: "flannel.1", via: "10.5.3.0", onlink: true, protocol: ROUTE_PROTOCOL };
    expect(await host.kernel.nexthops()).toEqual([state]);
    expect(await host.kernel.apply(del(nexthop))).toEqual([]);
    expect(await host.kernel.apply(del(nexthop))).toEqual([]);
    expect(await host.kernel.nexthops()).toEqual([]);
  });

  test("carry routes, which read like plain ones", async () => {
    await using host = await openHost(open);
    await addFlannel(host.kernel);
    expect(await host.kernel.apply(put(nexthop, route))).toEqual([]);
    expect((await host.ns.ip("route show 10.5.2.0/24")).trim()).toBe(
      "10.5.2.0/24 nhid 655618 via 10.5.2.0 dev flannel.1 proto 140 onlink",
    );
    const [state] = await host.kernel.routes(4, { dev: "flannel.1", protocol: ROUTE_PROTOCOL });
    expect(state).toMatchObject({
      dst: "10.5.2.0/24",
      dev: "flannel.1",
      via: "10.5.2.0",
      nexthop: 655_618,
      onlink: true,
    });
    // Deleted in the right order, again, and after the nexthop has taken the route along.
    expect(await host.kernel.apply(del(route, nexthop, route, nexthop))).toEqual([]);
    expect(await host.kernel.apply([...put(nexthop, route), ...del(nexthop, route)])).toEqual([]);
    expect(await host.kernel.routes(4, { dev: "flannel.1" })).toEqual([]);
  });

  test("take over a plain route of another protocol in place", async () => {
    await using host = await openHost(open);
    await addFlannel(host.kernel);
    await host.ns.ip("route add 10.5.2.0/24 via 10.5.2.0 dev flannel.1 onlink");
    expect(await host.kernel.apply(put(nexthop, route))).toEqual([]);
    const shown = await host.ns.json("ip", "-j", "-N", "route", "show", "10.5.2.0/24");
    expect(shown).toHaveLength(1);
    expect(shown[0]).toMatchObject({ nhid: 655_618, protocol: "140", gateway: "10.5.2.0" });
  });

  test("are filled into their routes where the kernel leaves them out", async () => {
    await using host = await openHost(open);
    await addFlannel(host.kernel);
    await host.ns.exec("sysctl", "-qw", "net.ipv4.nexthop_compat_mode=0");
    expect(await host.kernel.apply(put(nexthop, route))).toEqual([]);
    const [state] = await host.kernel.routes(4, { dev: "flannel.1" });
    expect(state).toMatchObject({ dev: "flannel.1", via: "10.5.2.0", nexthop: 655_618, onlink: true });
  });
});

describe.each(IMPLEMENTATIONS)("a batch through %s", (_, open) => {
  test("does what it can and tells what failed, where and why", async () => {
    await using host = await openHost(open);
    await addFlannel(host.kernel);
    const dev = "flannel.1";
    const changes = [
      ...put(
        { kind: "address", dev, address: "10.5.0.0/32" },
        { kind: "nexthop", id: 1, dev, via: "10.5.0.0", onlink: true },
        { kind: "nexthop", id: 2, dev, via: "10.5.2.0", onlink: true },
        { kind: "nexthop-route", dst: "10.5.1.0/24", nexthop: 1 },
        { kind: "nexthop-route", dst: "10.5.2.0/24", nexthop: 2 },
        { kind: "fdb", dev: "nosuch", mac: MAC, dst: "192.0.2.7" },
        { kind: "neighbour", dev, ip: "10.5.2.0", mac: "not a mac" },
        { kind: "neighbour", dev, ip: "10.5.2.0", mac: MAC },
        { kind: "route", dev, dst: "10.5.3.1/24", via: "10.5.3.0", onlink: true },
        { kind: "route", dev, dst: "10.5.4.0/24", via: "10.5.4.0" },
        { kind: "fdb", dev, mac: MAC, dst: "192.0.2.7" },
      ),
      ...del({ kind: "neighbour", dev: "nosuch", ip: "10.5.2.0", mac: MAC }),
    ];
    const failures = await host.kernel.apply(changes);
    expect(failures.map(({ index, errno }) => [index, errno])).toEqual([
      [1, 22],
      [3, 22],
      [5, 19],
      [6, 22],
      [8, 22],
      [9, expect.any(Number)],
    ]);
    for (const failure of failures) expect(failure.change).toBe(changes[failure.index]!);
    const texts = Object.fromEntries(failures.map(({ index, text }) => [index, text]));
    expect(texts[1]).toBe("EINVAL: Nexthop has invalid gateway");
    expect(texts[5]).toContain("nosuch");
    expect(texts[6]).toContain('"not a mac"');
    expect(texts[8]).toMatch(/^EINVAL: /);
    expect(await host.kernel.routes(4, { dev })).toHaveLength(1);
    expect(await host.kernel.neighbours(4, dev)).toHaveLength(1);
    expect(await host.kernel.fdb(dev)).toHaveLength(1);
  });

  test("of nothing does nothing", async () => {
    await using host = await openHost(open);
    expect(await host.kernel.apply([])).toEqual([]);
  });

  test("larger than one send or one run keeps count", async () => {
    await using host = await openHost(open);
    await addFlannel(host.kernel);
    const dev = "flannel.1";
    const ip = (index: number) => `10.${5 + (index >> 8)}.${index & 255}.0`;
    const objects = Array.from({ length: 2500 }, (_, index): NeighbourObject => {
      // Every hundredth has no device to go to.
      return { kind: "neighbour", dev: index % 100 === 99 ? "nosuch" : dev, ip: ip(index), mac: MAC };
    });
    const failures = await host.kernel.apply(put(...objects));
    expect(failures.map(({ index }) => index)).toEqual(Array.from({ length: 25 }, (_, n) => 100 * n + 99));
    const listed = (await host.kernel.neighbours(4, dev)).map((neighbour) => neighbour.ip);
    expect(new Set(listed)).toEqual(new Set(objects.filter((o) => o.dev === dev).map((o) => o.ip)));
  });
});
