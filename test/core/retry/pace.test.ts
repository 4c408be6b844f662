import { expect, test } from "bun:test";
import { Pace } from "../../../core/retry/pace.ts";

/** A pace with a clock that is set by hand. */
function paced(units?: number): { pace: Pace; pass(ms: number): void } {
  let now = 1_000;
  const pass = (ms: number) => {
    now += ms;
  };
  return { pace: new Pace(units, () => now), pass };
}

test("a rest is due after so many units, and counting starts over then", async () => {
  const { pace } = paced(10);
  expect(pace.isDue(9)).toBe(false);
  expect(pace.isDue(1)).toBe(true);
  await pace.rest();
  expect(pace.isDue(9)).toBe(false);
});

test("a rest is due after 8 ms of work, however little was counted", async () => {
  const { pace, pass } = paced();
  expect(pace.isDue(1_000_000)).toBe(false);
  pass(7.9);
  expect(pace.isDue()).toBe(false);
  pass(0.1);
  expect(pace.isDue()).toBe(true);
  await pace.rest();
  expect(pace.isDue()).toBe(false);
});

test("a rest lets the event loop have its turn; advancing rests only when it is due", async () => {
  const { pace } = paced(2);
  let ran = false;
  setImmediate(() => {
    ran = true;
  });
  await pace.advance(1);
  expect(ran).toBe(false);
  await pace.advance(1);
  expect(ran).toBe(true);
});
