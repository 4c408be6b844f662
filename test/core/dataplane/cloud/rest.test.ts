import { afterEach, beforeEach, expect, spyOn, test } from "bun:test";
import { rest } from "../../../../core/dataplane/cloud/rest.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

let now = 0;
const spies: { mockRestore(): void }[] = [];

beforeEach(() => {
  now = 0;
  spies.push(
    spyOn(performance, "now").mockImplementation(() => now),
    spyOn(globalThis, "setTimeout").mockImplementation(((done: () => void, ms: number) => {
      now += ms;
      queueMicrotask(done);
      return 0;
    }) as unknown as typeof setTimeout),
  );
});
afterEach(() => {
  for (const spy of spies.splice(0)) spy.mockRestore();
});

test("a day is a day, and the loop is heard of every hour", async () => {
  const pulses: number[] = [];
  await rest(DAY, new AbortController().signal, (ms) => pulses.push(ms));
  expect(now).toBe(DAY);
  expect(pulses).toEqual(Array.from({ length: 24 }, () => HOUR));
});

test("less than an hour is one sleep, and none at all after an abort", async () => {
  const pulses: number[] = [];
  await rest(1_500, new AbortController().signal, (ms) => pulses.push(ms));
  expect([now, pulses]).toEqual([1_500, [1_500]]);
  await rest(1_500, AbortSignal.abort(), (ms) => pulses.push(ms));
  expect(now).toBe(1_500);
});
