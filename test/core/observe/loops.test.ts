import { expect, test } from "bun:test";
import { Loops } from "../../../core/observe/loops.ts";

function setUp() {
  const clock = { now: 0 };
  return { clock, loops: new Loops(() => clock.now) };
}

test("a loop that says nothing about the next time is never overdue", () => {
  const { clock, loops } = setUp();
  loops.open("peers");
  clock.now = 1e12;
  expect(loops.list()).toEqual([{ name: "peers", restarts: 0 }]);
});

test("a loop is overdue after three times what it announced and half a minute, and not any more when it is heard of", () => {
  const { clock, loops } = setUp();
  const pulse = loops.open("host");
  pulse(60_000);
  clock.now = 3 * 60_000 + 30_000;
  expect(loops.overdue()).toEqual([]);
  clock.now += 1_001;
  expect(loops.overdue()).toEqual([{ name: "host", restarts: 0, overdueSeconds: 2 }]);
  pulse(60_000);
  expect(loops.overdue()).toEqual([]);
  clock.now += 1e9;
  pulse(Number.POSITIVE_INFINITY);
  expect(loops.overdue()).toEqual([]);
});

test("the next loop of the name takes over: restarts stay, the former one is not listened to", () => {
  const { clock, loops } = setUp();
  const former = loops.open("lease");
  loops.noteRestart("lease");
  loops.open("lease");
  former(1);
  clock.now = 1e9;
  expect(loops.list()).toEqual([{ name: "lease", restarts: 1 }]);
});
