import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { CloudChange, CloudReading, CloudRoute, CloudTable } from "flannel/sdk";
import { type CloudGoal, planCloud } from "../../../../core/dataplane/cloud/plan.ts";
import { parsePrefix } from "../../../../core/net/prefix.ts";

const ranges = [
  { network: parsePrefix("10.244.0.0/16")!, subnetLen: 24 },
  { network: parsePrefix("fd00:10:244::/48")!, subnetLen: 64 },
];
const SELF = "self";

const leaseLike = fc.oneof(
  fc.integer({ min: 0, max: 7 }).map((n) => `10.244.${n}.0/24`),
  fc.integer({ min: 0, max: 3 }).map((n) => (n === 0 ? "fd00:10:244::/64" : `fd00:10:244:${n}::/64`)),
);
const anyDestination = fc.oneof(
  { weight: 6, arbitrary: leaseLike },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      "0.0.0.0/0",
      "10.0.0.0/8",
      "10.244.0.0/16",
      "10.244.0.0/17",
      "10.244.1.128/25",
      "172.16.0.0/24",
      "::/0",
      "pl-12345",
    ),
  },
);
const route: fc.Arbitrary<CloudRoute> = fc.record(
  {
    dst: anyDestination,
    target: fc.constantFrom(SELF, "other", "third", "gateway"),
    kind: fc.constantFrom("node" as const, "node" as const, "foreign" as const),
    state: fc.constantFrom(
      "active" as const,
      "active" as const,
      "blackhole" as const,
      "disabled" as const,
      "pending" as const,
    ),
    marked: fc.boolean(),
  },
  { requiredKeys: ["dst", "target", "kind", "state"] },
);
const table: fc.Arbitrary<CloudTable> = fc.record({
  id: fc.constantFrom("t1", "t2", "t3"),
  routes: fc.array(route, { maxLength: 12 }),
});
const reading: fc.Arbitrary<CloudReading> = fc.record({
  tables: fc.uniqueArray(table, { maxLength: 3, selector: ({ id }) => id }),
  settings: fc.array(
    fc.record({
      name: fc.constant("check"),
      subject: fc.constantFrom("a", "b"),
      wanted: fc.constant("off"),
      actual: fc.constantFrom("on", "off"),
    }),
    { maxLength: 2 },
  ),
});
const goal: fc.Arbitrary<CloudGoal> = fc.record({
  self: fc.constant(SELF),
  own: fc.uniqueArray(leaseLike, { maxLength: 2 }),
  ranges: fc.constant(ranges),
  retired: fc.array(fc.record({ dst: leaseLike, target: fc.constantFrom("other", "third") }), {
    maxLength: 3,
  }),
});

/** A cloud that does what it is told; entries are told apart by what they are. */
function apply({ tables, settings = [] }: CloudReading, changes: readonly CloudChange[]): CloudReading {
  const lists = new Map(tables.map(({ id, routes }) => [id, [...routes]]));
  const switches = settings.map((each) => ({ ...each }));
  for (const change of changes) {
    if (change.action === "set") {
      for (const each of switches)
        if (each.subject === change.setting.subject) each.actual = change.setting.wanted;
      continue;
    }
    const routes = lists.get(change.table);
    if (!routes) throw new Error(`no table ${change.table}`);
    const made: CloudRoute = {
      dst: change.dst,
      target: "target" in change ? change.target : "",
      kind: "node",
      state: "active",
    };
    if (change.action === "mark") {
      const marked = routes.findIndex((each) => Bun.deepEquals(each, change.former));
      routes[marked] = { ...change.former, marked: true };
      continue;
    }
    const at = "former" in change ? routes.findIndex((each) => Bun.deepEquals(each, change.former)) : -1;
    if (change.action !== "create" && at < 0) throw new Error(`${change.dst} is not there`);
    if (change.action === "delete") routes.splice(at, 1);
    else if (change.action === "replace") routes.splice(at, 1, made);
    else routes.push(made);
  }
  return { tables: tables.map(({ id }) => ({ id, routes: lists.get(id) ?? [] })), settings: switches };
}

const conflicts = ({ routes }: CloudTable, dst: string) =>
  routes.some((each) => each.dst === dst && each.kind === "foreign");

describe("any table and any goal", () => {
  test("one round of changes reaches the goal, and a second plan is empty", () => {
    fc.assert(
      fc.property(reading, goal, (before, wanted) => {
        const after = apply(before, planCloud(before, wanted).changes);
        const again = planCloud(after, wanted);
        expect(again.changes).toEqual([]);
        for (const each of after.tables) {
          for (const dst of wanted.own) {
            const routes = each.routes.filter((found) => found.dst === dst && found.kind === "node");
            if (conflicts(each, dst)) continue;
            expect(routes.map(({ target }) => target)).toEqual([SELF]);
            expect(["active", "pending"]).toContain(routes[0]!.state);
          }
        }
      }),
      { numRuns: 2_000 },
    );
  });

  test("foreign routes, and routes to nodes outside the form of a lease, are never touched", () => {
    fc.assert(
      fc.property(reading, goal, (before, wanted) => {
        for (const change of planCloud(before, wanted).changes) {
          if (change.action !== "delete" && change.action !== "replace") continue;
          expect(change.former.kind).toBe("node");
          expect(change.dst).toMatch(/^(10\.244\.\d\.0\/24|fd00:10:244:(\d:)?:\/64)$/);
        }
      }),
      { numRuns: 2_000 },
    );
  });

  test("another node's route goes only when it is in our place, or retired", () => {
    fc.assert(
      fc.property(reading, goal, (before, wanted) => {
        for (const change of planCloud(before, wanted).changes) {
          if (change.action !== "delete" || change.former.target === SELF) continue;
          const { dst, former } = change;
          const own = wanted.own.includes(dst);
          const retired =
            wanted.retired?.some((each) => each.dst === dst && each.target === former.target) === true;
          expect(own || retired).toBe(true);
        }
      }),
      { numRuns: 2_000 },
    );
  });

  test("nothing is created beside what is there already", () => {
    fc.assert(
      fc.property(reading, goal, (before, wanted) => {
        for (const change of planCloud(before, wanted).changes) {
          if (change.action !== "create") continue;
          const there = before.tables.find(({ id }) => id === change.table)?.routes ?? [];
          expect(there.filter(({ dst }) => dst === change.dst)).toEqual([]);
        }
      }),
      { numRuns: 2_000 },
    );
  });
});

test("room is made before it is needed", () => {
  const former: CloudRoute = { dst: "10.244.9.0/24", target: SELF, kind: "node", state: "active" };
  const { changes } = planCloud(
    { tables: [{ id: "t", routes: [former] }] },
    { self: SELF, own: ["10.244.1.0/24"], ranges },
  );
  expect(changes.map(({ action }) => action)).toEqual(["delete", "create"]);
});

test("a route that is not in force yet is waited for, not made again", () => {
  const pending: CloudRoute = { dst: "10.244.1.0/24", target: SELF, kind: "node", state: "pending" };
  const plan = planCloud(
    { tables: [{ id: "t", routes: [pending] }] },
    { self: SELF, own: ["10.244.1.0/24"], ranges },
  );
  expect(plan).toMatchObject({ changes: [], settled: false });
});

describe("the mark of this node's route", () => {
  const right: CloudRoute = { dst: "10.244.1.0/24", target: SELF, kind: "node", state: "active" };
  const planned = (route: CloudRoute) =>
    planCloud({ tables: [{ id: "t", routes: [route] }] }, { self: SELF, own: [right.dst], ranges }).changes;

  test("is given to one that somebody else made, and to none that has it or can have none", () => {
    const nameless = { ...right, marked: false };
    expect(planned(nameless)).toEqual([{ action: "mark", table: "t", dst: right.dst, former: nameless }]);
    expect(planned({ ...right, marked: true })).toEqual([]);
    expect(planned(right)).toEqual([]);
  });
});

test("a route that takes a part of this node's subnet, and is somebody else's, is told and left alone", () => {
  const part: CloudRoute = { dst: "10.244.1.128/25", target: "pcx-1", kind: "foreign", state: "active" };
  const { changes, findings } = planCloud(
    { tables: [{ id: "t", routes: [part] }] },
    { self: SELF, own: ["10.244.1.0/24"], ranges },
  );
  expect(changes.map(({ action }) => action)).toEqual(["create"]);
  expect(findings).toMatchObject([
    {
      code: "CLOUD_ROUTE_OVERLAP",
      severity: "warning",
      text: "10.244.1.128/25 → pcx-1 in t lies in 10.244.1.0/24",
    },
  ]);
});
