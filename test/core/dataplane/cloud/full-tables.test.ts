import { expect, test } from "bun:test";
import { type CloudChange, CloudError, type CloudReading } from "flannel/sdk";
import { FullTables } from "../../../../core/dataplane/cloud/full-tables.ts";

const HOUR = 3_600_000;
const reading: CloudReading = { tables: [{ id: "t", routes: [] }] };
const change: CloudChange = { action: "create", table: "t", dst: "10.244.1.0/24", target: "self" };
const full = new CloudError("full", "test:create", "RouteLimitExceeded", "have it raised");

test("a table that had no room is tried again without a change of it: in minutes, then more and more rarely, at least once an hour", () => {
  let now = 0;
  const tables = new FullTables(() => now);
  const tries: number[] = [];
  for (; now < 12 * HOUR; now += 60_000) {
    if (tables.refusalOf(change, reading)) continue;
    tables.note(change, reading, full);
    tries.push(now);
  }
  const gaps = tries.slice(1).map((at, index) => at - (tries[index] ?? 0));
  expect(gaps[0]).toBeLessThanOrEqual(600_000 + 60_000);
  expect(Math.max(...gaps)).toBeLessThanOrEqual(HOUR + 60_000);
  expect(Math.min(...gaps.slice(4))).toBeGreaterThanOrEqual(HOUR / 2);
});

test("a table that has changed is tried at once, and one that had room is forgotten", () => {
  const tables = new FullTables(() => 0);
  tables.note(change, reading, full);
  expect(tables.refusalOf(change, reading)).toBe(full);
  const other: CloudReading = {
    tables: [{ id: "t", routes: [{ dst: "0.0.0.0/0", target: "igw", kind: "foreign", state: "active" }] }],
  };
  expect(tables.refusalOf(change, other)).toBeUndefined();
  tables.note(change, other, undefined);
  expect(tables.refusalOf(change, reading)).toBeUndefined();
});
