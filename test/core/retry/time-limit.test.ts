import { expect, test } from "bun:test";
import { withinTime } from "../../../core/retry/time-limit.ts";

const late = () => new Error("too late");

test("what is done in time gives what it gives", async () => {
  expect(await withinTime(1_000, Promise.resolve(7), late)).toBe(7);
  await expect(withinTime(1_000, Promise.reject(new Error("mine")), late)).rejects.toThrow("mine");
});

test("what takes longer is given up, and what becomes of it does not matter", async () => {
  const work = Promise.withResolvers<void>();
  const started = performance.now();
  await expect(withinTime(30, work.promise, late)).rejects.toThrow("too late");
  expect(performance.now() - started).toBeLessThan(1_000);
  work.reject(new Error("unhandled, unless somebody cares"));
  await Bun.sleep(0);
});
