import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { equalObjects, identityOf } from "../../../core/dataplane/identity.ts";
import { WantedState } from "../../../core/dataplane/wanted.ts";
import type { BatchObject } from "../../../core/netlink/kernel.ts";
import { anyObject, indexed, ModelKernel, sorted } from "./model.ts";

const fdb = (mac: string, dst: string): BatchObject => ({ kind: "fdb", dev: "flannel.1", mac, dst });
const MAC1 = "02:00:00:00:00:01";
const MAC2 = "02:00:00:00:00:02";

describe("one owner", () => {
  test("writes what is new or different, removes what is no longer wanted, is silent otherwise", () => {
    const wanted = new WantedState();
    const first = fdb(MAC1, "192.0.2.1");
    expect(wanted.set("a", [first])).toEqual({ put: [first], gone: [] });
    expect(wanted.set("a", [{ ...first }])).toEqual({ put: [], gone: [] });
    const moved = fdb(MAC1, "192.0.2.9");
    expect(wanted.set("a", [moved])).toEqual({ put: [moved], gone: [] });
    const other = fdb(MAC2, "192.0.2.9");
    expect(wanted.set("a", [other])).toEqual({ put: [other], gone: [moved] });
    expect(wanted.delete("a")).toEqual({ put: [], gone: [other] });
    expect(wanted.delete("a")).toEqual({ put: [], gone: [] });
    expect(wanted.size).toBe(0);
    expect([...wanted.owners()]).toEqual([]);
  });

  test("who wants two objects of one identity gets the last one, written once", () => {
    const wanted = new WantedState();
    const last = fdb(MAC1, "192.0.2.2");
    expect(wanted.set("a", [fdb(MAC1, "192.0.2.1"), last])).toEqual({ put: [last], gone: [] });
    expect(wanted.objectsOf("a")).toEqual([last]);
  });
});

describe("several owners of one identity", () => {
  const first = fdb(MAC1, "192.0.2.1");
  const second = fdb(MAC1, "192.0.2.2");

  test("the first one has it, the other is named as the loser", () => {
    const wanted = new WantedState();
    wanted.set("a", [first]);
    expect(wanted.set("b", [second])).toEqual({ put: [], gone: [] });
    expect(wanted.get(identityOf(first))).toBe(first);
    expect(wanted.ownerOf(identityOf(first))).toBe("a");
    expect(wanted.ownersOf(identityOf(first))).toEqual(["a", "b"]);
    expect(wanted.conflicts()).toEqual([{ identity: identityOf(first), holder: "a", losers: ["b"] }]);
  });

  test("when the holder leaves, the loser takes over", () => {
    const wanted = new WantedState();
    wanted.set("a", [first]);
    wanted.set("b", [second]);
    expect(wanted.delete("a")).toEqual({ put: [second], gone: [] });
    expect(wanted.conflicts()).toEqual([]);
    expect(wanted.delete("b")).toEqual({ put: [], gone: [second] });
  });

  test("when the holder wants something else, the loser takes over and only that is written", () => {
    const wanted = new WantedState();
    wanted.set("a", [first]);
    wanted.set("b", [second]);
    const elsewhere = fdb(MAC2, "192.0.2.1");
    expect(wanted.set("a", [elsewhere])).toEqual({ put: [elsewhere, second], gone: [] });
  });

  test("who wants the same object too keeps it when the first one leaves", () => {
    const wanted = new WantedState();
    wanted.set("a", [first]);
    expect(wanted.set("b", [{ ...first }])).toEqual({ put: [], gone: [] });
    expect(wanted.conflicts()).toEqual([]);
    expect(wanted.delete("a")).toEqual({ put: [], gone: [] });
    expect(wanted.ownerOf(identityOf(first))).toBe("b");
    expect(wanted.delete("b")).toEqual({ put: [], gone: [first] });
  });

  test("a loser that leaves is forgotten; the next in line takes over", () => {
    const wanted = new WantedState();
    const third = fdb(MAC1, "192.0.2.3");
    wanted.set("a", [first]);
    wanted.set("b", [second]);
    wanted.set("c", [third]);
    expect(wanted.conflicts()[0]?.losers).toEqual(["b", "c"]);
    expect(wanted.delete("b")).toEqual({ put: [], gone: [] });
    expect(wanted.delete("a")).toEqual({ put: [third], gone: [] });
  });

  test("two peers that swap their MACs in one change end as they want, nothing is removed", () => {
    const wanted = new WantedState();
    wanted.set("a", [fdb(MAC1, "192.0.2.1")]);
    wanted.set("b", [fdb(MAC2, "192.0.2.2")]);
    const { put, gone } = wanted.setAll([
      ["a", [fdb(MAC2, "192.0.2.1")]],
      ["b", [fdb(MAC1, "192.0.2.2")]],
    ]);
    expect(sorted(put)).toEqual([fdb(MAC1, "192.0.2.2"), fdb(MAC2, "192.0.2.1")]);
    expect(gone).toEqual([]);
    expect(wanted.conflicts()).toEqual([]);
  });
});

/** The rule in its simplest form: claims in the order they were first made since last withdrawn. */
class NaiveWanted {
  readonly #claims: { owner: string; object: BatchObject }[] = [];

  set(owner: string, objects: readonly BatchObject[]): void {
    const wishes = indexed(objects);
    for (const [identity, object] of wishes) {
      const claim = this.#claims.find((one) => one.owner === owner && identityOf(one.object) === identity);
      if (claim) claim.object = object;
      else this.#claims.push({ owner, object });
    }
    const stale = (one: { owner: string; object: BatchObject }) =>
      one.owner === owner && !wishes.has(identityOf(one.object));
    for (let at = this.#claims.findIndex(stale); at >= 0; at = this.#claims.findIndex(stale))
      this.#claims.splice(at, 1);
  }

  list(): readonly BatchObject[] {
    const first = new Map<string, BatchObject>();
    for (const { object } of this.#claims)
      if (!first.has(identityOf(object))) first.set(identityOf(object), object);
    return sorted(first.values());
  }

  contested(): string[] {
    const identities = new Set(this.#claims.map((claim) => identityOf(claim.object)));
    return [...identities]
      .filter((identity) => {
        const [head, ...rest] = this.#claims.filter((claim) => identityOf(claim.object) === identity);
        return rest.some((claim) => !equalObjects(claim.object, head!.object));
      })
      .sort();
  }
}

test("after any sequence of changes the kernel that got them holds exactly the wanted set", () => {
  const owner = fc.constantFrom("a", "b", "c", "d");
  const change = fc.array(fc.tuple(owner, fc.array(anyObject, { maxLength: 5 })), {
    minLength: 1,
    maxLength: 4,
  });
  fc.assert(
    fc.property(fc.array(change, { maxLength: 12 }), (changes) => {
      const wanted = new WantedState();
      const staged = new WantedState();
      const naive = new NaiveWanted();
      const kernel = new ModelKernel();
      for (const owners of changes) {
        const { put, gone } = wanted.setAll(owners);
        for (const [name, objects] of owners) naive.set(name, objects);
        for (const [name, objects] of owners) staged.stage(name, objects);
        for (const object of put) kernel.objects.set(identityOf(object), object);
        for (const object of gone) {
          expect(equalObjects(kernel.objects.get(identityOf(object))!, object)).toBe(true);
          kernel.objects.delete(identityOf(object));
        }
        expect(kernel.list()).toEqual(naive.list());
        expect(sorted([...wanted.entries()].map(([, { object }]) => object))).toEqual(naive.list());
        expect([...staged.entries()].sort()).toEqual([...wanted.entries()].sort());
        expect(staged.conflicts()).toEqual(wanted.conflicts());
        expect(wanted.size).toBe(naive.list().length);
        expect(
          wanted
            .conflicts()
            .map((conflict) => conflict.identity)
            .sort(),
        ).toEqual(naive.contested());
      }
      const names = new Set(changes.flat().map(([name]) => name));
      for (const name of names) wanted.delete(name);
      expect([wanted.size, [...wanted.owners()].length, wanted.conflicts().length]).toEqual([0, 0, 0]);
    }),
    { numRuns: 300 },
  );
});
