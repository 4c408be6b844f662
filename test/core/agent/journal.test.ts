import { expect, test } from "bun:test";
import { Journal } from "../../../core/agent/journal.ts";
import { describeChange, noteDelta } from "../../../core/agent/peer-events.ts";
import type { Lease, LeaseAttrs } from "../../../core/lease/lease.ts";

const leaseOf = (n: number, attrs: Partial<LeaseAttrs> = {}): Lease => ({
  key: `10.5.${n}.0-24`,
  subnets: { ipv4: `10.5.${n}.0/24` },
  attrs: { backendType: "vxlan", publicIP: `192.0.2.${n}`, nodeId: `node-${n}`, ...attrs },
  modRevision: n,
});

const NOTHING = { added: [], changed: [], removed: [], rejected: [], readmitted: [] };

function texts(journal: Journal, key?: string): readonly string[] {
  return journal.list(key).map(({ text }) => text);
}

test("entries come oldest first, and those of one node alone", () => {
  let now = 0;
  const journal = new Journal(() => ++now);
  journal.note("daemon", "started");
  journal.note("peer", "both", ["a", "b"]);
  journal.note("peer", "b alone", ["b"]);
  expect(journal.list().map(({ at, text }) => `${at} ${text}`)).toEqual(["1 started", "2 both", "3 b alone"]);
  expect(texts(journal, "a")).toEqual(["both"]);
  expect(texts(journal, "b")).toEqual(["both", "b alone"]);
  expect(texts(journal, "c")).toEqual([]);
});

test("only the last 2,000 entries are kept", () => {
  const journal = new Journal();
  for (let n = 0; n < 12_345; n++) journal.note("peer", String(n), ["k"]);
  const kept = texts(journal);
  expect(kept).toHaveLength(2_000);
  expect([kept[0], kept.at(-1)]).toEqual(["10345", "12344"]);
  expect(texts(journal, "k")).toHaveLength(2_000);
});

test("bursts of a large cluster do not fill the memory, and the last one is always kept", () => {
  const journal = new Journal();
  const keys = Array.from({ length: 20_000 }, (_, n) => `10.5.${n}`);
  for (let n = 0; n < 100; n++) journal.note("peer", String(n), keys);
  expect(texts(journal)).toEqual(["98", "99"]);
  journal.note(
    "peer",
    "huge",
    Array.from({ length: 60_000 }, (_, n) => String(n)),
  );
  expect(texts(journal)).toEqual(["huge"]);
});

test("what happens to a few peers is an entry each, with revision and reason", () => {
  const journal = new Journal();
  const [one, two, three] = [leaseOf(1), leaseOf(2), leaseOf(3)];
  noteDelta(
    journal,
    { type: "snapshot", leases: [one], revision: 7 },
    { ...NOTHING, added: [one], removed: [three] },
  );
  noteDelta(
    journal,
    { type: "changes", puts: [], deletes: [], revision: 9 },
    { ...NOTHING, changed: [{ before: two, after: leaseOf(2, { publicIP: "192.0.2.9" }) }], removed: [one] },
  );
  expect(texts(journal)).toEqual([
    "added 10.5.1.0-24: 192.0.2.1 (node node-1), vxlan, listed at revision 7",
    "removed 10.5.3.0-24: 192.0.2.3 (node node-3), vxlan, no longer listed at revision 7",
    "changed 10.5.2.0-24: publicIP 192.0.2.2 → 192.0.2.9, at revision 9",
    "removed 10.5.1.0-24: 192.0.2.1 (node node-1), vxlan, its lease was deleted, ran out or gave way at revision 9",
  ]);
  expect(texts(journal, "10.5.1.0-24")).toHaveLength(2);
});

test("what happens to many peers at once is one entry that each of them finds", () => {
  const journal = new Journal();
  const added = Array.from({ length: 200 }, (_, n) => leaseOf(n));
  noteDelta(journal, { type: "snapshot", leases: added, revision: 7 }, { ...NOTHING, added });
  expect(texts(journal, "10.5.199.0-24")).toEqual(["200 peers added at revision 7 by a complete list"]);
  expect(journal.list()).toHaveLength(1);
});

test("a change names what differs, shortened where it is long", () => {
  const { attrs } = leaseOf(1);
  expect(describeChange(attrs, attrs)).toBe("written anew with the same content");
  expect(describeChange(attrs, { ...attrs, backendData: { VNI: 1 } })).toBe('backendData none → {"VNI":1}');
  expect(describeChange(attrs, { ...attrs, nodeId: "x".repeat(500) }).length).toBeLessThan(200);
});
