import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { Backoff, sleep } from "../../../core/retry/backoff.ts";

describe("Backoff", () => {
  const options = fc.record({
    first: fc.integer({ min: 1, max: 10_000 }),
    max: fc.integer({ min: 1, max: 3_600_000 }),
    factor: fc.constantFrom(1, 1.5, 2, 10),
  });

  test("try n waits between half and all of min(max, first * factor^n), for ever", () => {
    fc.assert(
      fc.property(options, ({ first, max, factor }) => {
        const backoff = new Backoff({ first, max, factor });
        for (let tries = 0; tries < 50; tries++) {
          expect(backoff.tries).toBe(tries);
          const delay = backoff.next();
          const ceiling = Math.min(max, first * factor ** Math.min(tries, 30));
          expect(delay).toBeGreaterThanOrEqual(ceiling / 2);
          expect(delay).toBeLessThanOrEqual(ceiling);
        }
      }),
      { numRuns: 50 },
    );
  });

  test("stays finite after very many tries", () => {
    const backoff = new Backoff({ first: 500, max: 30_000 });
    for (let tries = 0; tries < 5_000; tries++) backoff.next();
    expect(backoff.next()).toBeLessThanOrEqual(30_000);
    expect(backoff.next()).toBeGreaterThanOrEqual(15_000);
  });

  test("two nodes do not wait alike", () => {
    const delays = new Set(
      Array.from({ length: 50 }, () => new Backoff({ first: 1_000, max: 30_000 }).next()),
    );
    expect(delays.size).toBeGreaterThan(40);
  });

  test("starts over after a success", () => {
    const backoff = new Backoff({ first: 10, max: 10_000 });
    for (let tries = 0; tries < 8; tries++) backoff.next();
    backoff.reset();
    expect(backoff.tries).toBe(0);
    expect(backoff.next()).toBeLessThanOrEqual(10);
  });
});

/** An abort signal that counts its listeners. */
class CountingSignal extends EventTarget {
  listeners = 0;
  aborted = false;

  override addEventListener(...args: Parameters<EventTarget["addEventListener"]>): void {
    this.listeners++;
    super.addEventListener(...args);
  }

  override removeEventListener(...args: Parameters<EventTarget["removeEventListener"]>): void {
    this.listeners--;
    super.removeEventListener(...args);
  }
}

describe("sleep", () => {
  test("resolves after its time, and leaves no listener on a signal that lives on", async () => {
    const signal = new CountingSignal();
    for (let round = 0; round < 50; round++) await sleep(0, signal as unknown as AbortSignal);
    expect(signal.listeners).toBe(0);
  });

  test("ends at once when aborted, without rejecting", async () => {
    const controller = new AbortController();
    const asleep = sleep(3_000_000, controller.signal);
    const before = performance.now();
    controller.abort(new Error("stop"));
    await asleep;
    expect(performance.now() - before).toBeLessThan(1_000);
  });

  test("does not begin when already aborted", async () => {
    await sleep(3_000_000, AbortSignal.abort());
  });

  test("a wait of years does not fire at once: a timer above 2^31-1 ms would", async () => {
    const controller = new AbortController();
    let over = false;
    const asleep = sleep(2_562_046 * 3_600_000, controller.signal).then(() => {
      over = true;
    });
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(over).toBe(false);
    controller.abort();
    await asleep;
  });

  test.each([-5, 0])("%p ms is over in no time", async (ms) => {
    await sleep(ms);
  });
});
