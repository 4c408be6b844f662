import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  type ClockReading,
  clockJump,
  decideRenewal,
  type RenewalState,
  requireMargin,
} from "../../../core/lease/renewal.ts";
import { Fault } from "../../../core/observe/fault.ts";

const hour = 3_600_000;
const day = 24 * hour;
const start: ClockReading = { monotonic: 5_000, wall: 1_800_000_000_000 };

/** Both clocks `ms` later; the wall clock has jumped by `jump` on top. */
function later(from: ClockReading, ms: number, jump = 0): ClockReading {
  return { monotonic: from.monotonic + ms, wall: from.wall + ms + jump };
}

/** Where the lease was confirmed at the start and looked at last `looked` ms ago. */
function state(ttl: number | undefined, lastLook: ClockReading = start): RenewalState {
  return { ttl, confirmed: start, lastLook };
}

test("a reservation has no timer at all", () => {
  expect(decideRenewal(state(undefined), later(start, 400 * day, -day), hour)).toEqual({ action: "none" });
});

test.each([
  ["fresh", 0, { action: "wait", ms: 60_000, secondsLeft: 86_400 }],
  ["an hour and ten seconds left", 23 * hour - 10_000, { action: "wait", ms: 10_000, secondsLeft: 3_610 }],
  ["the margin begins", 23 * hour, { action: "renew", secondsLeft: 3_600 }],
  ["deep in the margin, retried", 24 * hour - 1_500, { action: "renew", secondsLeft: 1 }],
  ["over", 24 * hour, { action: "ask", reason: "overdue", secondsLeft: 0 }],
  ["process stopped for 1.5 TTL", 36 * hour, { action: "ask", reason: "overdue", secondsLeft: 0 }],
] as const)("a day's lease, margin one hour: %s", (_, elapsed, decision) => {
  const now = later(start, elapsed);
  const lastLook = later(start, Math.max(0, elapsed - 60_000));
  expect(decideRenewal(state(day, lastLook), now, hour)).toEqual(decision);
});

describe("clocks", () => {
  test.each([
    ["two hours back", -2 * hour],
    ["two hours on", 2 * hour],
    ["three seconds back", -3_000],
    ["a machine suspended for 30 hours: only the wall clock went on", 30 * hour],
  ])("%s: the store is asked, once", (_, jump) => {
    const lastLook = later(start, 60_000);
    const now = later(lastLook, 60_000, jump);
    expect(clockJump(lastLook, now)).toBe(jump);
    const decision = decideRenewal(state(day, lastLook), now, hour);
    expect(decision).toEqual({ action: "ask", reason: "clock-jump", secondsLeft: 86_280 });
    // The store said that 80,000 s are left; from there on the new clock is as good as the old.
    const asked: RenewalState = { ttl: 80_000_000, confirmed: now, lastLook: now };
    expect(decideRenewal(asked, later(now, 60_000), hour)).toEqual({
      action: "wait",
      ms: 60_000,
      secondsLeft: 79_940,
    });
  });

  test("a clock that is merely wrong, or slewed by NTP, changes nothing", () => {
    const wrong = { monotonic: start.monotonic, wall: 0 };
    const slewed = later(wrong, 60_000, 30);
    expect(clockJump(wrong, slewed)).toBe(0);
    const lease = { ttl: day, confirmed: wrong, lastLook: wrong };
    expect(decideRenewal(lease, slewed, hour)).toMatchObject({ action: "wait" });
  });
});

test("a store that grants no more than the margin causes no busy loop", () => {
  const decision = decideRenewal(state(20_000), start, hour);
  expect(decision).toEqual({ action: "wait", ms: 10_000, secondsLeft: 20 });
});

test("a day with jumps of -2 h and +2 h costs one renewal and two questions", () => {
  let now = start;
  let lease = state(day);
  const done = { renew: 0, ask: 0, looks: 0 };
  const jumps = new Map([
    [100, -2 * hour],
    [900, 2 * hour],
  ]);
  while (now.monotonic - start.monotonic < day) {
    const decision = decideRenewal(lease, now, hour);
    done.looks += 1;
    if (decision.action === "none") throw new Error("no reservation");
    // The store's own count, which no clock of ours can move.
    const left = lease.confirmed.monotonic + (lease.ttl ?? 0) - now.monotonic;
    if (decision.action === "wait") {
      lease = { ...lease, lastLook: now };
      now = later(now, decision.ms, jumps.get(done.looks) ?? 0);
      continue;
    }
    done[decision.action] += 1;
    lease = { ttl: decision.action === "renew" ? day : left, confirmed: now, lastLook: now };
  }
  expect(done).toMatchObject({ renew: 1, ask: 2 });
  expect(done.looks).toBeLessThan(1_460);
});

test("property: waits are short, never a busy loop, and never reach past the start of the margin", () => {
  const scene = fc.record({
    ttl: fc.integer({ min: 1_000, max: 400 * day }),
    margin: fc.integer({ min: 1, max: 400 * day }),
    elapsed: fc.nat(401 * day),
    jump: fc.oneof(fc.constant(0), fc.integer({ min: -day, max: day })),
  });
  fc.assert(
    fc.property(scene, ({ ttl, margin, elapsed, jump }) => {
      const lastLook = later(start, Math.max(0, elapsed - 60_000));
      const now = later(start, elapsed, jump);
      const decision = decideRenewal(state(ttl, lastLook), now, margin);
      if (decision.action !== "wait") {
        if (decision.action === "renew") expect(ttl - elapsed).toBeGreaterThan(0);
        return;
      }
      expect(decision.ms).toBeGreaterThanOrEqual(10);
      expect(decision.ms).toBeLessThanOrEqual(60_000);
      if (margin < ttl)
        expect(elapsed + decision.ms).toBeLessThanOrEqual(Math.max(ttl - margin, elapsed + 10));
      expect(elapsed + decision.ms).toBeLessThan(Math.max(ttl, elapsed + 11));
    }),
  );
});

test.each([
  [20_000, 20_000],
  [20_000, 30_000],
  [20_000, 0],
  [20_000, -5],
])("a lease of %d ms with a margin of %d ms is refused", (ttl, margin) => {
  expect(() => requireMargin(ttl, margin)).toThrow(Fault);
});

test("a margin below the time to live is fine", () => {
  requireMargin(20_000, 10_000);
  requireMargin(day, hour);
});
