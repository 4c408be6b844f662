import { expect, test } from "bun:test";
import fc from "fast-check";
import { mergeDeltas, NO_CHANGE } from "../../../core/dataplane/delta.ts";
import type { Peer } from "../../../core/lease/lease.ts";

const peer = (key: string, version = 0): Peer => ({ key, backendType: "x", nodeId: String(version) });

test("nothing before and nothing after changes nothing", () => {
  const delta = { added: [peer("a")], changed: [peer("b")], removed: ["c"] };
  expect(mergeDeltas(NO_CHANGE, delta)).toEqual(delta);
  expect(mergeDeltas(delta, NO_CHANGE)).toEqual(delta);
});

test("a peer that was added and then changed is still new", () => {
  const merged = mergeDeltas(
    { ...NO_CHANGE, added: [peer("a", 1)] },
    { ...NO_CHANGE, changed: [peer("a", 2)] },
  );
  expect(merged).toEqual({ added: [peer("a", 2)], changed: [], removed: [] });
});

test("a peer that went and came back has changed", () => {
  const merged = mergeDeltas({ ...NO_CHANGE, removed: ["a"] }, { ...NO_CHANGE, added: [peer("a", 2)] });
  expect(merged).toEqual({ added: [], changed: [peer("a", 2)], removed: [] });
});

test("following merged changes leads to the same peers as following each", () => {
  const step = fc.record({
    key: fc.constantFrom("a", "b", "c", "d"),
    version: fc.nat(9),
    gone: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
      const peers = new Map<string, Peer>([["a", peer("a")]]);
      const follower = new Map(peers);
      let merged = NO_CHANGE;
      for (const { key, version, gone } of steps) {
        const known = peers.has(key);
        if (gone && !known) continue;
        if (gone) peers.delete(key);
        else peers.set(key, peer(key, version));
        const one = [peer(key, version)];
        const delta = {
          added: known || gone ? [] : one,
          changed: known && !gone ? one : [],
          removed: gone ? [key] : [],
        };
        merged = mergeDeltas(merged, delta);
      }
      for (const key of merged.removed) follower.delete(key);
      for (const each of [...merged.added, ...merged.changed]) follower.set(each.key, each);
      expect(new Map([...follower].sort())).toEqual(new Map([...peers].sort()));
      const keys = [...merged.added, ...merged.changed].map((each) => each.key).concat(merged.removed);
      expect(new Set(keys).size).toBe(keys.length);
    }),
  );
});
