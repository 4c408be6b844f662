import { expect, test } from "bun:test";
import { isClockSynchronised } from "../../../core/host/clock.ts";

test("the kernel tells, and the clock is as before", () => {
  const before = Date.now();
  expect([true, false]).toContain(isClockSynchronised() as boolean);
  expect(Math.abs(Date.now() - before)).toBeLessThan(5_000);
});
