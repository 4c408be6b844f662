import { expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import { isLegal } from "../../../core/lease/allocate.ts";
import { prefixesOf } from "../../../core/lease/key.ts";
import type { Lease, Subnets } from "../../../core/lease/lease.ts";
import { type PeerDelta, PeerTable } from "../../../core/lease/peers.ts";
import { overlaps } from "../../../core/net/prefix.ts";
import { range4, stored } from "./arbitrary.ts";
import { cost } from "./cost.ts";

// Properties and timings are only slow on a machine that is busy with other suites.
setDefaultTimeout(30_000);

const nodeId = "aaaaaaaaaaaa-111111111111";
const own = stored({ ipv4: "10.3.1.0/24" }, { publicIP: "192.0.2.1", nodeId });
const ranges = { ipv4: range4() };

const subnets: fc.Arbitrary<Subnets> = fc
  .record({
    block: fc.nat(6),
    length: fc.constantFrom(22, 23, 24, 24, 24, 25),
    six: fc.option(fc.nat(3)),
    only6: fc.boolean(),
  })
  .map(({ block, length, six, only6 }) => {
    const ipv6 = six === null ? {} : { ipv6: `fc00:0:0:${six}::/64` };
    if (only6 && six !== null) return ipv6;
    return { ipv4: `10.3.${length < 24 ? block & ~3 : block}.0/${length}`, ...ipv6 };
  });
const lease = fc
  .record({
    subnets,
    publicIP: fc.constantFrom("192.0.2.1", "192.0.2.2", "192.0.2.3"),
    nodeId: fc.constantFrom(undefined, nodeId, "other"),
    data: fc.nat(2),
    modRevision: fc.nat(50),
  })
  .map(({ subnets, publicIP, nodeId, data, modRevision }) =>
    stored(subnets, { publicIP, backendData: data, ...(nodeId && { nodeId }) }, { modRevision }),
  );
const step = fc.oneof(
  fc.record({
    kind: fc.constant("apply" as const),
    puts: fc.array(lease, { maxLength: 4 }),
    deletes: fc.array(subnets, { maxLength: 2 }),
  }),
  fc.record({ kind: fc.constant("reset" as const), leases: fc.array(lease, { maxLength: 8 }) }),
  fc.record({ kind: fc.constant("own" as const), lease }),
);

/** The leases routed to, worked out from scratch. */
function model(store: ReadonlyMap<string, Lease>, mine: Lease): string[] {
  const meet = (a: Lease, b: Lease) =>
    prefixesOf(a.subnets).some((x) => prefixesOf(b.subnets).some((y) => overlaps(x, y)));
  const weight = (l: Lease) => (isLegal(l.subnets, ranges) === undefined ? 1000 : 0) + (l.modRevision ?? 0);
  const candidates = [...store.values()]
    .filter((l) => l.key !== mine.key && !meet(l, mine))
    .filter((l) => l.attrs.publicIP !== mine.attrs.publicIP)
    .filter((l) => mine.attrs.nodeId === undefined || l.attrs.nodeId !== mine.attrs.nodeId)
    .sort((a, b) => weight(b) - weight(a) || (a.key < b.key ? -1 : 1));
  const accepted: Lease[] = [];
  for (const candidate of candidates) if (!accepted.some((l) => meet(l, candidate))) accepted.push(candidate);
  return accepted.map((l) => l.key).sort();
}

test("property: after any updates the table equals what follows from the store alone, and the deltas add up", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
      let mine: Lease = own;
      const table = new PeerTable({ own, ranges });
      const store = new Map<string, Lease>();
      const routed = new Map<string, Lease>();
      const rejected = new Set<string>();
      for (const each of steps) {
        let delta: PeerDelta;
        if (each.kind === "own") {
          mine = each.lease;
          delta = table.setOwn(mine);
        } else if (each.kind === "reset") {
          store.clear();
          for (const l of each.leases) store.set(l.key, l);
          delta = table.reset(each.leases);
        } else {
          const deletes = each.deletes.map((subnets) => stored(subnets, {}).key);
          for (const key of deletes) store.delete(key);
          for (const l of each.puts) store.set(l.key, l);
          delta = table.apply(each.puts, deletes);
        }
        for (const l of delta.removed) expect(routed.delete(l.key)).toBe(true);
        for (const l of delta.added) {
          expect(routed.has(l.key)).toBe(false);
          routed.set(l.key, l);
        }
        for (const { before, after } of delta.changed) {
          expect(routed.get(before.key)?.attrs).toEqual(before.attrs);
          expect(after.attrs).not.toEqual(before.attrs);
          routed.set(after.key, after);
        }
        for (const { lease: l } of delta.rejected) rejected.add(l.key);
        for (const key of delta.readmitted) expect(rejected.delete(key)).toBe(true);
        expect([...routed.keys()].sort()).toEqual(model(store, mine));
        for (const [key, l] of routed) expect(table.get(key)?.attrs).toEqual(l.attrs);
        expect(table.size).toBe(routed.size);
        expect(table.list()).toHaveLength(routed.size);
        expect(new Set(table.rejected().map((r) => r.lease.key))).toEqual(rejected);
        const shut = [...store.keys()].filter((key) => !routed.has(key) && key !== mine.key);
        expect([...rejected].sort()).toEqual(shut.sort());
      }
    }),
    { numRuns: 1000 },
  );
});

test("20,000 peers: no list, event or odd prefix length costs more than a pass over the table", () => {
  const list = (data: number) =>
    Array.from({ length: 20_000 }, (_, i) =>
      stored(
        {
          ipv4: `10.${i >> 8}.${i & 255}.0/24`,
          ipv6: `fd00:0:${(i >> 8).toString(16)}:${(i & 255).toString(16)}::/64`,
        },
        {
          publicIP: `172.16.${i >> 8}.${i & 255}`,
          backendData: { VNI: 1, VtepMAC: `02:00:00:00:00:${data}` },
        },
      ),
    );
  const first = list(1);
  const again = list(1);
  const table = new PeerTable({ ranges });
  const fill = cost("first list", () => {
    expect(new PeerTable({ ranges }).reset(first).added).toHaveLength(20_000);
  });
  table.reset(first);
  const same = cost("same list", () => {
    expect(table.reset(again)).toEqual({ added: [], changed: [], removed: [], rejected: [], readmitted: [] });
  });
  let data = 0;
  const one = cost("one event", () => {
    const attrs = { backendType: "", backendData: ++data };
    expect(table.apply([{ ...first[7]!, attrs }], []).changed).toHaveLength(1);
  });
  // An odd length that comes and goes costs a pass over the table each time, no more.
  const odd = cost("odd length", () => {
    table.apply([stored({ ipv4: "10.0.0.0/8" }, { publicIP: "172.31.0.2" }, { modRevision: 1 })], []);
    expect(table.apply([], ["10.0.0.0-8"]).readmitted).toEqual(["10.0.0.0-8"]);
  });
  expect(fill).toBeLessThan(80);
  expect(same).toBeLessThan(50);
  expect(one).toBeLessThan(0.5);
  expect(odd).toBeLessThan(150);
});

test("20,000 peers in turns: the same table and delta as at once, and timers run in between", async () => {
  const leases = Array.from({ length: 20_000 }, (_, i) =>
    stored({ ipv4: `10.${i >> 8}.${i & 255}.0/24` }, { publicIP: `172.16.${i >> 8}.${i & 255}` }),
  );
  const stray = stored({ ipv4: "10.0.0.0/9" }, { publicIP: "172.31.0.2" });
  const [atOnce, inTurns] = [new PeerTable({ own, ranges }), new PeerTable({ own, ranges })];
  const updates = [
    { type: "snapshot", leases: [...leases, stray], revision: 1 },
    { type: "changes", puts: [], deletes: leases.slice(0, 9_000).map(({ key }) => key), revision: 2 },
    { type: "snapshot", leases: leases.slice(8_000), revision: 3, unreadable: [stray.key] },
  ] as const;
  let turns = 0;
  const timer = setInterval(() => {
    turns += 1;
  }, 1);
  for (const update of updates) {
    expect(await inTurns.updateInTurns(update)).toEqual(atOnce.update(update));
    expect(inTurns.size).toBe(atOnce.size);
  }
  clearInterval(timer);
  expect(turns).toBeGreaterThan(2);
});
