import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync } from "node:fs";
import type { Kernel, Notice } from "../../../core/netlink/kernel.ts";
import { Fault } from "../../../core/observe/fault.ts";
import { inNamespace, kernelIn } from "../../lab/in-namespace.ts";
import { Namespace } from "../../lab/namespace.ts";
import { until } from "../../lab/until.ts";
import { addFlannel, del, FLANNEL, IMPLEMENTATIONS, openHost, put } from "./host.ts";

setDefaultTimeout(30_000);

/** Collects notices in the background until disposed; `failure` is what the iterator threw. */
function listen(kernel: Kernel) {
  const stop = new AbortController();
  const seen: Notice[] = [];
  const state: { failure?: unknown } = {};
  const notices = kernel.notices(stop.signal);
  const ended = (async () => {
    try {
      for await (const batch of notices) seen.push(...batch);
    } catch (error) {
      state.failure = error;
    }
  })();
  return {
    seen,
    state,
    ended,
    /** Waits until a notice has all the given properties of its object. */
    async see(kind: Notice["kind"], action: Notice["action"], properties: object): Promise<void> {
      const matches = (notice: Notice) =>
        notice.kind === kind &&
        notice.action === action &&
        Object.entries(properties).every(([key, value]) => Bun.deepEquals(objectOf(notice)[key], value));
      await until(() => seen.some(matches), {
        message: () =>
          `${action} ${kind} ${JSON.stringify(properties)} among ${JSON.stringify(seen.slice(-20))}`,
      });
    },
    async [Symbol.asyncDispose]() {
      stop.abort();
      await ended;
    },
  };
}

function objectOf(notice: Notice): Record<string, unknown> {
  return Object.values(notice).find((value) => typeof value === "object") as Record<string, unknown>;
}

describe.each(IMPLEMENTATIONS)("notices through %s", (_, open) => {
  test("tell of every kind of object, when it comes and when it goes", async () => {
    await using host = await openHost(open);
    await using listener = listen(host.kernel);
    const dev = "flannel.1";
    await addFlannel(host.kernel);
    await listener.see("link", "put", { name: dev, up: true, mac: FLANNEL.mac, mtu: FLANNEL.mtu });
    const address = { kind: "address", dev, address: "10.5.0.0/32" } as const;
    const neighbour = { kind: "neighbour", dev, ip: "10.5.2.0", mac: "0a:00:00:00:00:02" } as const;
    const fdb = { kind: "fdb", dev, mac: "0a:00:00:00:00:02", dst: "192.0.2.2" } as const;
    const nexthop = { kind: "nexthop", id: 7, dev, via: "10.5.2.0", onlink: true } as const;
    const route = { kind: "nexthop-route", dst: "10.5.2.0/24", nexthop: 7 } as const;
    const six = { kind: "route", dst: "fd00:5::/64", dev, via: "fd00:5::", onlink: true } as const;
    const objects = [address, neighbour, fdb, nexthop, route, six];
    const look = async (action: Notice["action"]) => {
      await listener.see("address", action, { dev, address: "10.5.0.0/32" });
      // The kernel clears the MAC of an entry before it removes it.
      await listener.see("neighbour", action, {
        dev,
        ip: "10.5.2.0",
        ...(action === "put" ? { mac: neighbour.mac } : {}),
      });
      await listener.see("fdb", action, { dev, mac: fdb.mac, dst: "192.0.2.2" });
      await listener.see("nexthop", action, { id: 7, dev, via: "10.5.2.0", protocol: 140 });
      await listener.see("route", action, { dst: "10.5.2.0/24", nexthop: 7, dev, protocol: 140 });
      await listener.see("route", action, { dst: "fd00:5::/64", dev, via: "fd00:5::" });
    };
    expect(await host.kernel.apply(put(...objects))).toEqual([]);
    await look("put");
    expect(await host.kernel.apply(del(...objects.toReversed()))).toEqual([]);
    await look("delete");
    await host.ns.ip("link set eth0 mtu 1400");
    await listener.see("link", "put", { name: "eth0", mtu: 1400 });
    await host.kernel.deleteLink(dev);
    await listener.see("link", "delete", { name: dev });
    expect(listener.state.failure).toBeUndefined();
  });

  test("a dump made after subscribing leaves no gap", async () => {
    await using host = await openHost(open);
    await addFlannel(host.kernel);
    const neighbour = (index: number) =>
      ({ kind: "neighbour", dev: "flannel.1", ip: `10.5.${index}.0`, mac: FLANNEL.mac }) as const;
    let index = 0;
    let stop = false;
    const writer = (async () => {
      while (!stop) {
        await host.kernel.apply(put(neighbour(index % 250)));
        index++;
        await Bun.sleep(1);
      }
    })();
    await until(() => index > 3, { message: "the writer writes" });
    await using listener = listen(host.kernel);
    const dumped = await host.kernel.neighbours(4, "flannel.1");
    await until(() => index > dumped.length + 10, { message: "the writer goes on" });
    stop = true;
    await writer;
    const wanted = Array.from({ length: Math.min(index, 250) }, (_, n) => `10.5.${n}.0`);
    await until(
      () => {
        const known = new Set(dumped.map(({ ip }) => ip));
        for (const notice of listener.seen) if (notice.kind === "neighbour") known.add(notice.neighbour.ip);
        return wanted.every((ip) => known.has(ip));
      },
      { message: "every neighbour in the dump or in a notice" },
    );
  });

  test("end at once when aborted, and not begin when aborted before", async () => {
    await using host = await openHost(open);
    const listener = listen(host.kernel);
    await Bun.sleep(0);
    const started = performance.now();
    await listener[Symbol.asyncDispose]();
    expect(performance.now() - started).toBeLessThan(2000);
    expect(listener.state.failure).toBeUndefined();
    const batches: unknown[] = [];
    for await (const batch of host.kernel.notices(AbortSignal.abort())) batches.push(batch);
    expect(batches).toEqual([]);
  });

  test("end when the kernel is closed", async () => {
    await using host = await openHost(open);
    const listener = listen(host.kernel);
    host.kernel.close();
    await listener.ended;
    expect(listener.state.failure).toBeUndefined();
  });
});

describe("rtnetlink notices", () => {
  test("name a device that is gone by the time they are read, and leave other tables out", async () => {
    await using ns = await Namespace.create("burst");
    using kernel = kernelIn(ns);
    const stop = new AbortController();
    const notices = kernel.notices(stop.signal);
    await ns.ipBatch(
      "link add d0 type veth peer name d1",
      "link set d0 up",
      "address add 192.0.2.1/24 dev d0",
      "route add 10.77.0.0/16 dev d0 table 77",
      "route add 10.78.0.0/16 dev d0",
      "link delete d0",
    );
    const seen: Notice[] = [];
    for await (const batch of notices) {
      seen.push(...batch);
      if (seen.some(({ kind, action }) => kind === "link" && action === "delete")) stop.abort();
    }
    const addresses = seen.flatMap((notice) => (notice.kind === "address" ? notice.address : []));
    expect(addresses).toContainEqual(expect.objectContaining({ dev: "d0", address: "192.0.2.1/24" }));
    const routes = seen.flatMap((notice) => (notice.kind === "route" ? notice.route : []));
    expect(routes).toContainEqual(expect.objectContaining({ dev: "d0", dst: "10.78.0.0/16" }));
    // 77 by number, and the local table with the host's own addresses.
    expect(routes.map(({ dst }) => dst)).not.toContain("10.77.0.0/16");
    expect(routes.map(({ dst }) => dst)).not.toContain("192.0.2.1/32");
  });

  test("throw NETLINK_OVERRUN when some were lost, and work again after subscribing anew", async () => {
    await using ns = await Namespace.create("overrun");
    using kernel = kernelIn(ns, { noticeBuffer: 4096 });
    await kernel.createLink({ ...FLANNEL, vxlan: { vni: 1, port: 8472 } });
    await using listener = listen(kernel);
    const burst = Array.from({ length: 500 }, (_, n) => ({
      kind: "fdb" as const,
      dev: "flannel.1",
      mac: `0a:00:00:00:${(n >> 8).toString(16).padStart(2, "0")}:${(n & 255).toString(16).padStart(2, "0")}`,
      dst: "192.0.2.2",
    }));
    expect(await kernel.apply(put(...burst))).toEqual([]);
    await listener.ended;
    expect(listener.state.failure).toBeInstanceOf(Fault);
    expect(listener.state.failure).toMatchObject({ code: "NETLINK_OVERRUN" });
    await using again = listen(kernel);
    await kernel.setLink("flannel.1", { mtu: 1300 });
    await again.see("link", "put", { name: "flannel.1", mtu: 1300 });
  });

  test("leave no descriptor behind in 200 subscriptions, aborted or broken off", async () => {
    await using ns = await Namespace.create("fds");
    using kernel = kernelIn(ns);
    await kernel.createLink({ ...FLANNEL, vxlan: { vni: 1, port: 8472 } });
    let mtu = 1200;
    const cycle = async (index: number) => {
      const stop = new AbortController();
      const iterator = kernel.notices(stop.signal)[Symbol.asyncIterator]();
      const first = iterator.next();
      if (index % 2 === 0) {
        stop.abort();
        expect(await first).toEqual({ done: true, value: undefined });
        return;
      }
      await kernel.setLink("flannel.1", { mtu: ++mtu });
      expect((await first).done).toBe(false);
      await iterator.return?.();
    };
    await cycle(0);
    await cycle(1);
    const before = sockets();
    for (let index = 0; index < 200; index++) await cycle(index);
    await until(() => sockets() <= before, { message: () => `${sockets()} sockets after, ${before} before` });
    // The descriptors closed were ours and no other's: everything still works.
    expect(await kernel.link("flannel.1")).toMatchObject({ name: "flannel.1" });
  });

  test("a kernel leaves no descriptor behind", async () => {
    await using ns = await Namespace.create("close");
    const before = sockets();
    for (let index = 0; index < 20; index++) {
      const kernel = kernelIn(ns);
      inNamespace(ns, () => kernel.notices(new AbortController().signal));
      kernel.close();
      kernel.close();
      await expect(kernel.links()).rejects.toMatchObject({ code: "NETLINK_CLOSED" });
    }
    await until(() => sockets() <= before, { message: () => `${sockets()} sockets after, ${before} before` });
  });
});

/** Number of this process's descriptors. */
function sockets(): number {
  return readdirSync("/proc/self/fd").length;
}
