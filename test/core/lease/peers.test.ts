import { describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Lease, LeaseAttrs } from "../../../core/lease/lease.ts";
import { type PeerDelta, PeerTable } from "../../../core/lease/peers.ts";
import { range4, stored } from "./arbitrary.ts";

// Properties and timings are only slow on a machine that is busy with other suites.
setDefaultTimeout(30_000);

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
