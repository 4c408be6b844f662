import { expect, test } from "bun:test";
import { Pace } from "../../../core/retry/pace.ts";

/** Keeps the event loop from turning for so many ms. */
function work(ms: number): void {
  for (const end = performance.now() + ms; performance.now() < end; );
}

test("a rest is due after so many units, and counting starts over then", async () => {
  const pace = new Pace(10);
  expect(pace.isDue(9)).toBe(false);
  expect(pace.isDue(1)).toBe(true);
  await pace.rest();
  expect(pace.isDue(9)).toBe(false);
});

test("a rest is due after 8 ms of work, however little was counted", async () => {
  const pace = new Pace();
  expect(pace.isDue(1_000_000)).toBe(false);
  work(9);
  expect(pace.isDue(0)).toBe(true);
  await pace.rest();
  expect(pace.isDue()).toBe(false);
});

test("resting lets timers run, advancing rests only when it is due", async () => {
  const pace = new Pace(2);
  let ran = false;
  setImmediate(() => {
    ran = true;
  });
  await pace.advance(1);
  expect(ran).toBe(false);
  await pace.advance(1);
  expect(ran).toBe(true);
});
