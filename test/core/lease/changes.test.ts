import { expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import { PendingUpdate } from "../../../core/lease/changes.ts";
import type { Lease } from "../../../core/lease/lease.ts";
import { PeerTable } from "../../../core/lease/peers.ts";
import type { PeerUpdate } from "../../../core/lease/store.ts";
import { stored } from "./arbitrary.ts";

// Properties and timings are only slow on a machine that is busy with other suites.
setDefaultTimeout(30_000);

function lease(block: number, data: unknown = null): Lease {
  return stored({ ipv4: `10.3.${block}.0/24` }, { publicIP: `192.0.2.${block}`, backendData: data });
}

test("a burst of 5,000 updates of three keys waits as three", () => {
  const pending = new PendingUpdate();
  for (let i = 0; i < 5000; i++)
    pending.add({ type: "changes", puts: [lease(i % 3, i)], deletes: [], revision: i });
  const update = pending.take();
  if (update?.type !== "changes") throw new Error("no changes");
  expect(update.puts.map((put) => put.attrs.backendData).sort()).toEqual([4997, 4998, 4999]);
  expect(update.revision).toBe(4999);
  expect(pending.empty).toBe(true);
  expect(pending.take()).toBeUndefined();
});

test("deleted then put is a put, put then deleted is a delete", () => {
  const pending = new PendingUpdate();
  const [one, two] = [lease(1), lease(2)];
  pending.add({ type: "changes", puts: [two], deletes: [one.key], revision: 5 });
  pending.add({ type: "changes", puts: [one], deletes: [two.key], revision: 6 });
  expect(pending.take()).toEqual({ type: "changes", puts: [one], deletes: [two.key], revision: 6 });
});

test("changes after a snapshot make a newer snapshot; a snapshot makes all before it void", () => {
  const pending = new PendingUpdate();
  pending.add({ type: "changes", puts: [lease(9)], deletes: ["10.3.8.0-24"], revision: 1 });
  const [one, two, three] = [lease(1), lease(2), lease(3)];
  pending.add({ type: "snapshot", leases: [one, two], revision: 2, unreadable: [three.key, ".lock"] });
  pending.add({ type: "changes", puts: [three], deletes: [two.key], revision: 3 });
  expect(pending.take()).toEqual({
    type: "snapshot",
    leases: [one, three],
    revision: 3,
    unreadable: [".lock"],
  });
});

const updates: fc.Arbitrary<PeerUpdate> = fc.oneof(
  fc
    .record({
      puts: fc.array(fc.tuple(fc.nat(5), fc.nat(3)), { maxLength: 4 }),
      deletes: fc.array(fc.nat(5), { maxLength: 2 }),
    })
    .map(({ puts, deletes }) => {
      const leases = new Map(puts.map(([block, data]) => [block, lease(block, data)]));
      const gone = deletes.filter((block) => !leases.has(block)).map((block) => `10.3.${block}.0-24`);
      return { type: "changes" as const, puts: [...leases.values()], deletes: gone, revision: 1 };
    }),
  fc
    .record({ blocks: fc.uniqueArray(fc.nat(5)), unreadable: fc.uniqueArray(fc.nat(5), { maxLength: 2 }) })
    .map(({ blocks, unreadable }) => ({
      type: "snapshot" as const,
      leases: blocks.filter((block) => !unreadable.includes(block)).map((block) => lease(block)),
      unreadable: unreadable.map((block) => `10.3.${block}.0-24`),
      revision: 1,
    })),
);

test("property: a consumer that reads late ends where one that reads all along ends", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(updates, fc.boolean()), { maxLength: 15 }), (steps) => {
      const prompt = new PeerTable();
      const late = new PeerTable();
      const pending = new PendingUpdate();
      const read = () => {
        const update = pending.take();
        if (update) late.update(update);
      };
      for (const [update, reads] of steps) {
        prompt.update(update);
        pending.add(update);
        if (reads) read();
      }
      read();
      const state = (table: PeerTable) =>
        table
          .list()
          .map(({ key, attrs }) => `${key} ${JSON.stringify(attrs)}`)
          .sort();
      expect(state(late)).toEqual(state(prompt));
    }),
    { numRuns: 1000 },
  );
});
