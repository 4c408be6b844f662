import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { equalObjects, identityOf } from "../../../core/dataplane/identity.ts";
import { orderChanges } from "../../../core/dataplane/order.ts";
import { diffStates } from "../../../core/dataplane/reconcile.ts";
import { WantedState } from "../../../core/dataplane/wanted.ts";
import type { BatchObject, KernelChange } from "../../../core/netlink/kernel.ts";
import { actualOf, anyObject, distinctObjects, ModelKernel, sorted } from "./model.ts";

function wantedOf(objects: readonly BatchObject[]): WantedState {
  const wanted = new WantedState();
  wanted.set("peer", objects);
  return wanted;
}

async function changesFor(
  wanted: readonly BatchObject[],
  actual: readonly BatchObject[],
): Promise<KernelChange[]> {
  const { put, gone } = await diffStates(wantedOf(wanted), actualOf(actual));
  return orderChanges(put, gone);
}

/** Objects that a kernel could hold: a route that points to a nexthop only together with it. */
const consistent = distinctObjects.map((objects) => {
  const ids = new Set(objects.flatMap((object) => (object.kind === "nexthop" ? [object.id] : [])));
  return objects.filter((object) => object.kind !== "nexthop-route" || ids.has(object.nexthop));
});

test("the changes turn any kernel into exactly the wanted one, and then there are none", async () => {
  await fc.assert(
    fc.asyncProperty(consistent, consistent, async (wanted, actual) => {
      const kernel = new ModelKernel(actual);
      kernel.apply(await changesFor(wanted, actual));
      expect(kernel.list()).toEqual(sorted(wanted));
      expect(await changesFor(wanted, [...kernel.objects.values()])).toEqual([]);
    }),
    { numRuns: 300 },
  );
});

test("stale routes go before anything else, a nexthop only after its route", () => {
  fc.assert(
    fc.property(fc.array(anyObject), fc.array(anyObject), (put, gone) => {
      const changes = orderChanges(put, gone);
      expect(changes.length).toBe(put.length + gone.length);
      const at = (action: string, ...kinds: string[]) =>
        changes.flatMap((change, position) =>
          change.action === action && kinds.includes(change.object.kind) ? [position] : [],
        );
      const before = (first: number[], second: number[]) =>
        expect(Math.max(-1, ...first)).toBeLessThan(Math.min(Number.POSITIVE_INFINITY, ...second));
      const routesGo = at("delete", "route", "nexthop-route");
      before(routesGo, [...at("put", "address", "neighbour", "fdb", "nexthop", "route", "nexthop-route")]);
      before(routesGo, at("delete", "address", "neighbour", "fdb", "nexthop"));
      // Bottom up: no packet is led to an entry that is not there yet.
      before(at("put", "neighbour"), at("put", "fdb"));
      before(at("put", "neighbour", "fdb"), at("put", "nexthop"));
      before(at("put", "nexthop"), at("put", "route", "nexthop-route"));
      before(at("put", "route", "nexthop-route"), at("delete", "nexthop"));
      before(at("delete", "nexthop"), at("delete", "fdb", "neighbour"));
    }),
    { numRuns: 200 },
  );
});

describe("several objects of one identity", () => {
  const own: BatchObject = {
    kind: "route",
    dst: "10.5.1.0/24",
    dev: "flannel.1",
    via: "10.5.1.0",
    onlink: true,
  };
  const appended: BatchObject = { ...own, via: "10.5.9.9" };

  test("the one that is not wanted goes, the wanted one is not written again", async () => {
    const { put, gone } = await diffStates(wantedOf([own]), actualOf([own], [appended]));
    expect({ put, gone }).toEqual({ put: [], gone: [appended] });
  });

  test("also when the kernel lists the wanted one second", async () => {
    const { put, gone } = await diffStates(wantedOf([own]), actualOf([appended], [own]));
    expect({ put, gone }).toEqual({ put: [], gone: [appended] });
  });

  test("all of them go when none is wanted", async () => {
    const { put, gone } = await diffStates(wantedOf([]), actualOf([own], [appended]));
    expect({ put, gone: sorted(gone).length }).toEqual({ put: [], gone: 2 });
  });
});

describe("identity and equality", () => {
  test("an object equals itself and its copy", () => {
    fc.assert(fc.property(anyObject, (object) => equalObjects(object, structuredClone(object))));
  });

  test("objects of different kinds are never equal, in either order", () => {
    fc.assert(
      fc.property(anyObject, anyObject, (a, b) => {
        expect(equalObjects(a, b)).toBe(equalObjects(b, a));
        if (a.kind !== b.kind) expect(equalObjects(a, b)).toBe(false);
      }),
    );
  });

  test.each([
    ["10.5.1.0/24", undefined, "10.5.1.0/24", 0],
    ["fd00:5::/64", undefined, "fd00:5::/64", 1024],
    ["fd00:5::/64", 0, "fd00:5::/64", 1024],
  ])(
    "a route to %s with metric %p is the one the kernel shows with metric %4$p",
    (dst, metric, shown, shownMetric) => {
      const written: BatchObject = {
        kind: "route",
        dst,
        dev: "d",
        ...(metric === undefined ? {} : { metric }),
      };
      expect(identityOf(written)).toBe(
        identityOf({ kind: "route", dst: shown, dev: "d", metric: shownMetric }),
      );
    },
  );

  test("a plain route and one through a nexthop object are one thing to the kernel", () => {
    expect(identityOf({ kind: "route", dst: "10.5.1.0/24", dev: "d" })).toBe(
      identityOf({ kind: "nexthop-route", dst: "10.5.1.0/24", nexthop: 7 }),
    );
  });
});

test("comparing 80,000 objects lets timers run in between", async () => {
  const objects = Array.from(
    { length: 80_000 },
    (_, at): BatchObject => ({ kind: "fdb", dev: "d", mac: at.toString(16), dst: "192.0.2.1" }),
  );
  let ticks = 0;
  const timer = setInterval(() => ticks++, 0);
  await diffStates(wantedOf(objects), actualOf(objects));
  clearInterval(timer);
  expect(ticks).toBeGreaterThan(3);
});
