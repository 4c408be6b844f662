import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { isLegal } from "../../../core/lease/allocate.ts";
import { prefixesOf } from "../../../core/lease/key.ts";
import type { Lease, LeaseAttrs, Subnets } from "../../../core/lease/lease.ts";
import { type PeerDelta, PeerTable } from "../../../core/lease/peers.ts";
import { overlaps } from "../../../core/net/prefix.ts";
import { range4, stored } from "./arbitrary.ts";
import { cost } from "./cost.ts";

const nodeId = "aaaaaaaaaaaa-111111111111";
const own = stored({ ipv4: "10.3.1.0/24" }, { publicIP: "192.0.2.1", nodeId });
const ranges = { ipv4: range4() };

function peer(block: number, attrs: Partial<LeaseAttrs> = {}, facts: { modRevision?: number } = {}): Lease {
  return stored({ ipv4: `10.3.${block}.0/24` }, { publicIP: `192.0.2.${block}`, ...attrs }, facts);
}

/** The delta as keys, empty lists left out. */
function brief(delta: PeerDelta): Record<string, unknown> {
  const lists = {
    added: delta.added.map((lease) => lease.key),
    changed: delta.changed.map(({ after }) => after.key),
    removed: delta.removed.map((lease) => lease.key),
    rejected: delta.rejected.map(({ lease, reason, by }) => `${lease.key} ${reason} ${by.key}`),
    readmitted: delta.readmitted,
  };
  return Object.fromEntries(Object.entries(lists).filter(([, list]) => list.length > 0));
}

describe("what changes", () => {
  test("A11: an attribute that changed is a change, by event and by list; the same again is none", () => {
    for (const way of ["apply", "reset"] as const) {
      const table = new PeerTable({ own });
      const update = (lease: Lease) =>
        brief(way === "apply" ? table.apply([lease], []) : table.reset([own, lease]));
      expect(update(peer(2, { backendData: { VNI: 1, VtepMAC: "a" } }))).toEqual({ added: ["10.3.2.0-24"] });
      expect(update(peer(2, { backendData: { VtepMAC: "a", VNI: 1 } }))).toEqual({});
      expect(update(peer(2, { backendData: { VNI: 1, VtepMAC: "b" } }))).toEqual({
        changed: ["10.3.2.0-24"],
      });
      expect(update(peer(2, { backendData: { VNI: 1, VtepMAC: "b" }, publicIP: "192.0.2.77" }))).toEqual({
        changed: ["10.3.2.0-24"],
      });
      expect(
        update(peer(2, { backendData: { VNI: 1, VtepMAC: "b" }, publicIP: "192.0.2.77", backendV6Data: 1 })),
      ).toEqual({
        changed: ["10.3.2.0-24"],
      });
      expect(table.get("10.3.2.0-24")?.attrs.publicIP).toBe("192.0.2.77");
    }
  });

  test("a change tells what was before, as it was last known", () => {
    const table = new PeerTable({ own });
    const before = peer(2, { backendData: "old" });
    const after = peer(2, { backendData: "new" });
    table.apply([before], []);
    expect(table.apply([after], []).changed).toEqual([{ before, after }]);
    expect(table.apply([], [after.key]).removed).toEqual([after]);
  });

  test("removal only on proof: a key that cannot be read is not gone, an unknown key removes nothing", () => {
    const table = new PeerTable({ own });
    table.reset([own, peer(2), peer(3), peer(4)]);
    expect(brief(table.reset([own, peer(3)], ["10.3.2.0-24", ".lock"]))).toEqual({
      removed: ["10.3.4.0-24"],
    });
    expect(brief(table.apply([], [".lock", "10.3.9.0-24", "x10.3.3.0-24"]))).toEqual({});
    expect(table.list().map((lease) => lease.key)).toEqual(["10.3.2.0-24", "10.3.3.0-24"]);
    expect(brief(table.reset([]))).toEqual({ removed: ["10.3.2.0-24", "10.3.3.0-24"] });
    expect(table.size).toBe(0);
  });

  test("the own lease never appears, in a first list, a second one, or as an event", () => {
    const table = new PeerTable({ own });
    expect(brief(table.reset([own]))).toEqual({});
    expect(brief(table.reset([own]))).toEqual({});
    expect(brief(table.reset([]))).toEqual({});
    expect(brief(table.apply([own], []))).toEqual({});
    expect(brief(table.apply([], [own.key]))).toEqual({});
    expect(table.rejected()).toEqual([]);
  });

  test("a burst on one key is one change; there and back again is none", () => {
    const table = new PeerTable({ own });
    table.reset([own, peer(2, { backendData: 0 })]);
    const burst = Array.from({ length: 5000 }, (_, i) => peer(2, { backendData: i }));
    expect(table.apply(burst, []).changed).toHaveLength(1);
    expect(brief(table.apply([peer(2, { backendData: 1 }), peer(2, { backendData: 4999 })], []))).toEqual({});
  });
});

describe("what is not routed to", () => {
  test("whatever overlaps the own subnet, carries the own id or claims the own address", () => {
    const table = new PeerTable({ own });
    const wide = stored({ ipv4: "10.3.0.0/23" }, { publicIP: "192.0.2.9" });
    const sibling = stored({ ipv4: "10.3.1.0/24", ipv6: "fc00::/64" }, { publicIP: "192.0.2.8" });
    const mine = peer(4, { nodeId });
    const old = peer(5, { publicIP: "192.0.2.1" });
    const thief = peer(6, { publicIP: "192.0.2.1", nodeId: "other" });
    expect(brief(table.reset([own, wide, sibling, mine, old, thief]))).toEqual({
      rejected: [
        `10.3.0.0-23 own-subnet ${own.key}`,
        `10.3.1.0-24&fc00::-64 own-subnet ${own.key}`,
        `10.3.4.0-24 own-node ${own.key}`,
        `10.3.5.0-24 own-node ${own.key}`,
        `10.3.6.0-24 own-address ${own.key}`,
      ],
    });
    expect(table.size).toBe(0);
    expect(brief(table.apply([], ["10.3.0.0-23"]))).toEqual({ readmitted: ["10.3.0.0-23"] });
  });

  test("a peer that turns into one of these is removed, and comes back", () => {
    const table = new PeerTable({ own });
    table.reset([peer(2)]);
    expect(brief(table.apply([peer(2, { nodeId })], []))).toEqual({
      removed: ["10.3.2.0-24"],
      rejected: [`10.3.2.0-24 own-node ${own.key}`],
    });
    expect(brief(table.apply([peer(2)], []))).toEqual({
      added: ["10.3.2.0-24"],
      readmitted: ["10.3.2.0-24"],
    });
  });

  test("the newer of two leases with one subnet counts; the older comes back when it goes", () => {
    const table = new PeerTable({ own });
    const older = peer(2, {}, { modRevision: 10 });
    const newer = stored(
      { ipv4: "10.3.2.0/24", ipv6: "fc00::/64" },
      { publicIP: "192.0.2.9" },
      { modRevision: 20 },
    );
    table.apply([older], []);
    expect(brief(table.apply([newer], []))).toEqual({
      added: [newer.key],
      removed: [older.key],
      rejected: [`${older.key} overlap ${newer.key}`],
    });
    // Written again without a change in content, the older one is the newer.
    expect(brief(table.apply([peer(2, {}, { modRevision: 30 })], []))).toMatchObject({
      added: [older.key],
      removed: [newer.key],
    });
    expect(brief(table.apply([], [older.key]))).toMatchObject({
      added: [newer.key],
      readmitted: [newer.key],
    });
  });

  test("a stray key over the whole network empties nothing, however new it is", () => {
    const table = new PeerTable({ own, ranges });
    const stray = stored({ ipv4: "10.0.0.0/8" }, { publicIP: "192.0.2.250" });
    const other = new PeerTable({ ranges });
    table.reset([own, peer(2), peer(3), stray]);
    other.reset([peer(2), peer(3), stray]);
    expect(table.size).toBe(2);
    expect(other.list().map((lease) => lease.key)).toEqual(["10.3.2.0-24", "10.3.3.0-24"]);
    expect(other.rejected()).toMatchObject([{ lease: stray, reason: "overlap" }]);
    // Where it is in nobody's way it is a peer, as it is to upstream.
    expect(brief(other.apply([], ["10.3.2.0-24", "10.3.3.0-24"])).added).toEqual(["10.0.0.0-8"]);
  });

  test("another own lease: what was shut out comes in, what is ours now goes", () => {
    const table = new PeerTable({ own });
    const next = peer(2, { publicIP: "192.0.2.1", nodeId });
    const former = stored(own.subnets, { publicIP: "192.0.2.40", nodeId: "other" });
    table.reset([own, peer(2), peer(3)]);
    expect(brief(table.setOwn(next))).toEqual({
      removed: ["10.3.2.0-24"],
      rejected: ["10.3.1.0-24 own-node 10.3.2.0-24"],
    });
    expect(brief(table.apply([former], []))).toMatchObject({
      added: ["10.3.1.0-24"],
      readmitted: ["10.3.1.0-24"],
    });
  });
});

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

test("20,000 peers: first list, the same list again, and one event each in their time", () => {
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
  const fill = cost(() => {
    expect(new PeerTable({ ranges }).reset(first).added).toHaveLength(20_000);
  });
  table.reset(first);
  const same = cost(() => {
    expect(brief(table.reset(again))).toEqual({});
  });
  let data = 0;
  const one = cost(() => {
    const attrs = { backendType: "", backendData: ++data };
    expect(table.apply([{ ...first[7]!, attrs }], []).changed).toHaveLength(1);
  });
  // An odd length that comes and goes costs a pass over the table each time, no more.
  const odd = cost(() => {
    table.apply([stored({ ipv4: "10.0.0.0/8" }, { publicIP: "172.31.0.2" }, { modRevision: 1 })], []);
    expect(brief(table.apply([], ["10.0.0.0-8"]))).toEqual({ readmitted: ["10.0.0.0-8"] });
  });
  if (process.env.FIGURES) console.log({ fill, same, one, odd });
  expect(fill).toBeLessThan(300);
  expect(same).toBeLessThan(300);
  expect(one).toBeLessThan(10);
  expect(odd).toBeLessThan(600);
});
