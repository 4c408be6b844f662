import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { Allowance } from "../../../core/netlink/allowance.ts";
import { BATCH_BYTES, Batch } from "../../../core/netlink/batch.ts";
import { Exchange } from "../../../core/netlink/exchange.ts";
import type { BatchObject, Kernel, KernelChange } from "../../../core/netlink/kernel.ts";
import { inNamespace, kernelIn } from "../../lab/in-namespace.ts";
import { Namespace } from "../../lab/namespace.ts";
import { until } from "../../lab/until.ts";
import { del, FLANNEL, put } from "./host.ts";

setDefaultTimeout(60_000);

const dev = FLANNEL.name;
const hex = (value: number) => value.toString(16).padStart(2, "0");

/** What the dataplane makes of `count` vxlan peers, by kind, in the order in which it is made. */
function peers(count: number): Record<"neighbours" | "fdb" | "nexthops" | "routes", BatchObject[]> {
  const indexes = Array.from({ length: count }, (_, index) => index + 256);
  const subnet = (index: number) => `10.${index >> 8}.${index & 255}.0`;
  const mac = (index: number) => `02:00:00:00:${hex(index >> 8)}:${hex(index & 255)}`;
  return {
    neighbours: indexes.map((n) => ({ kind: "neighbour", dev, ip: subnet(n), mac: mac(n) })),
    fdb: indexes.map((n) => ({ kind: "fdb", dev, mac: mac(n), dst: `192.168.${n >> 8}.${n & 255}` })),
    nexthops: indexes.map((n) => ({ kind: "nexthop", id: n, dev, via: subnet(n), onlink: true })),
    routes: indexes.map((n) => ({ kind: "nexthop-route", dst: `${subnet(n)}/24`, nexthop: n })),
  };
}

async function addDevice(kernel: Kernel): Promise<void> {
  await kernel.createLink({ ...FLANNEL, vxlan: { vni: 1, port: 8472 } });
  await kernel.setLink(dev, { up: true });
}

/** Longest time the event loop was held while `work` ran, ms; coarse, as other processes hold it too. */
async function longestHold(work: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  let last = performance.now();
  let stop = false;
  const tick = () => {
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
    if (!stop) setImmediate(tick);
  };
  setImmediate(tick);
  await work();
  stop = true;
  return longest;
}

describe("a batch over rtnetlink", () => {
  test("programs 20,000 peers (printed, not judged)", async () => {
    await using ns = await Namespace.create("perf");
    using kernel = kernelIn(ns);
    await addDevice(kernel);
    const { neighbours, fdb, nexthops, routes } = peers(20_000);
    const measure = async (name: string, work: () => Promise<unknown>) => {
      const started = performance.now();
      const hold = await longestHold(work);
      const took = performance.now() - started;
      console.log(
        `  ${name.padEnd(28)} ${took.toFixed(0).padStart(6)} ms, event loop held ≤ ${hold.toFixed(0)} ms`,
      );
    };
    const apply = async (changes: KernelChange[]) => expect(await kernel.apply(changes)).toEqual([]);
    await measure("put 80,000 objects", () => apply(put(...neighbours, ...fdb, ...nexthops, ...routes)));
    await measure("dump 20,000 routes", async () =>
      expect(await kernel.routes(4, { dev })).toHaveLength(20_000),
    );
    await measure("dump 20,000 neighbours", async () =>
      expect(await kernel.neighbours(4, dev)).toHaveLength(20_000),
    );
    await measure("dump 20,000 FDB entries", async () => expect(await kernel.fdb(dev)).toHaveLength(20_000));
    await measure("dump 20,000 nexthops", async () => expect(await kernel.nexthops()).toHaveLength(20_000));
    await measure("put 60,000 again", () => apply(put(...neighbours, ...fdb, ...routes)));
    await measure("delete 80,000 objects", () => apply(del(...routes, ...nexthops, ...fdb, ...neighbours)));
    expect(await kernel.routes(4, { dev })).toEqual([]);
    expect(await kernel.nexthops()).toEqual([]);
  });

  test("lets go of the event loop, and other requests be answered, in between", async () => {
    await using ns = await Namespace.create("turns");
    using kernel = kernelIn(ns);
    await addDevice(kernel);
    const { neighbours } = peers(5000);
    let applied = false;
    const work = kernel.apply(put(...neighbours)).then(() => {
      applied = true;
    });
    let answers = 0;
    while (!applied) {
      expect(await kernel.link(dev)).toMatchObject({ name: dev });
      if (!applied) answers++;
      await new Promise((resolve) => setImmediate(resolve));
    }
    await work;
    expect(answers).toBeGreaterThan(2);
  });

  test("of several callers stays apart", async () => {
    await using ns = await Namespace.create("callers");
    using kernel = kernelIn(ns);
    await addDevice(kernel);
    const { neighbours, fdb } = peers(3000);
    const broken = fdb.map((object, index) =>
      index % 10 === 0 ? { ...object, dev: "lo" } : object,
    ) as BatchObject[];
    const [first, second, dumped] = await Promise.all([
      kernel.apply(put(...neighbours)),
      kernel.apply(put(...broken)),
      kernel.fdb(dev),
    ]);
    expect(first).toEqual([]);
    expect(second.map(({ index }) => index)).toEqual(Array.from({ length: 300 }, (_, n) => 10 * n));
    expect(dumped.length).toBeLessThanOrEqual(2700);
    expect(await kernel.fdb(dev)).toHaveLength(2700);
  });

  test("loses no refusal where the receive buffer is small", async () => {
    await using ns = await Namespace.create("small");
    using kernel = kernelIn(ns);
    await addDevice(kernel);
    const index = (await kernel.link(dev))?.index;
    const exchange = inNamespace(ns, () => new Exchange({ batchBytes: BATCH_BYTES, receiveBuffer: 8192 }));
    try {
      const batch = new Batch(exchange, () => index);
      // No such nexthop: every change is refused, in the kernel's own words.
      const failures = await batch.apply(put(...peers(2000).routes));
      expect(failures.map((failure) => failure.index)).toEqual(Array.from({ length: 2000 }, (_, n) => n));
      expect(failures[0]?.text).toBe("EINVAL: Nexthop id does not exist");
    } finally {
      exchange.close();
    }
  });

  test("ends with a fault when the kernel is closed under it", async () => {
    await using ns = await Namespace.create("close");
    using kernel = kernelIn(ns);
    await addDevice(kernel);
    const outcome = kernel.apply(put(...peers(5000).neighbours)).then(
      () => "done",
      (error) => error.code,
    );
    await until(async () => (await kernel.neighbours(4, dev)).length > 0, {
      message: "the first neighbours",
    });
    kernel.close();
    expect(["done", "NETLINK_CLOSED"]).toContain(await outcome);
  });
});

describe("the allowance", () => {
  const change: KernelChange = { action: "put", object: peers(1).neighbours[0]! };
  const other: KernelChange = { action: "put", object: peers(1).routes[0]! };
  const admitted = (allowance: Allowance, ...kinds: KernelChange[]) => {
    allowance.begin();
    let count = 0;
    while (count < 5000 && allowance.admits(kinds[count % kinds.length]!, count)) count++;
    return count;
  };

  test("grows while the kernel is quick, up to its bound, and shrinks when it is slow", () => {
    const allowance = new Allowance(1000);
    const counts: number[] = [];
    for (let round = 0; round < 6; round++) {
      const count = admitted(allowance, change);
      counts.push(count);
      allowance.settle(count, 0.01);
    }
    expect(counts).toEqual([16, 32, 64, 128, 256, 256]);
    allowance.settle(256, 100);
    expect(admitted(allowance, change)).toBe(12);
  });

  test("knows the kinds apart, and gives a mixed send the smaller", () => {
    const allowance = new Allowance(1000);
    allowance.settle(admitted(allowance, change), 0.01);
    expect(admitted(allowance, change)).toBe(32);
    expect(admitted(allowance, other)).toBe(16);
    expect(admitted(allowance, change, other)).toBe(16);
  });

  test("always admits one", () => {
    const allowance = new Allowance(0);
    expect(admitted(allowance, change)).toBe(1);
    allowance.settle(1, 10_000);
    expect(admitted(allowance, change)).toBe(1);
  });
});
