import { Fault } from "../observe/fault.ts";

/** One look at both clocks, ms. A suspended machine stops the monotonic one; an operator or NTP moves the other. */
export interface ClockReading {
  /** `performance.now()` (CLOCK_MONOTONIC). */
  readonly monotonic: number;
  /** `Date.now()`. */
  readonly wall: number;
}

/** What is known of the own lease's time to live. */
export interface RenewalState {
  /** Time to live in ms as the store last told it (granted, renewed or asked for); undefined for a reservation. */
  readonly ttl: number | undefined;
  /** The clocks just before that answer was asked for: the lease lives at least `ttl` from here. */
  readonly confirmed: ClockReading;
  /** The clocks at the last decision: what passed since shows a jump. */
  readonly lastLook: ClockReading;
}

/** What to do about the lease's time now. Keep `now` as the next `lastLook` after every decision. */
export type RenewalDecision =
  /** A reservation: there is nothing to renew and no timer to set. */
  | { readonly action: "none" }
  /** Look again after `ms`. */
  | { readonly action: "wait"; readonly ms: number; readonly secondsLeft: number }
  /** Renew now; on failure try again with back-off, deciding anew before each try. */
  | { readonly action: "renew"; readonly secondsLeft: number }
  /** Ask the store for the time to live first and write nothing before the answer; `reason` is for the log. */
  | { readonly action: "ask"; readonly reason: "clock-jump" | "overdue"; readonly secondsLeft: number };

/** The wall clock is looked at this often: a resume from suspend is noticed within a minute. */
const LONGEST_WAIT_MS = 60_000;

/** Shortest wait, so that rounding never makes a busy loop. */
const SHORTEST_WAIT_MS = 10;

/** How far the two clocks may part between two looks before it counts as a jump: above any step of a slewing NTP. */
const TOLERATED_DRIFT_MS = 2_000;

/**
 * Decides when the own lease is renewed. Time left is counted on the monotonic clock from the store's own answer, so
 * clocks that differ between machines do not matter; a jump between the clocks (time set, machine suspended) and a
 * lease that should have ended (process stopped) both mean that the store is asked before anything is written.
 *
 * @param margin ms before the end at which renewal starts; where the store granted no more than that, half of the
 *   granted time is used instead, so that a short lease never causes a busy loop.
 */
export function decideRenewal(state: RenewalState, now: ClockReading, margin: number): RenewalDecision {
  const { ttl, confirmed, lastLook } = state;
  if (ttl === undefined) return { action: "none" };
  const left = ttl - (now.monotonic - confirmed.monotonic);
  const secondsLeft = Math.max(0, Math.floor(left / 1000));
  if (clockJump(lastLook, now) !== 0) return { action: "ask", reason: "clock-jump", secondsLeft };
  if (left <= 0) return { action: "ask", reason: "overdue", secondsLeft: 0 };
  const untilRenewal = left - (margin < ttl ? margin : ttl / 2);
  if (untilRenewal <= 0) return { action: "renew", secondsLeft };
  const ms = Math.min(Math.max(untilRenewal, SHORTEST_WAIT_MS), LONGEST_WAIT_MS);
  return { action: "wait", ms, secondsLeft };
}

/**
 * By how many ms the wall clock ran ahead of (positive) or behind the monotonic one between two looks; 0 when within
 * tolerance.
 */
export function clockJump(before: ClockReading, now: ClockReading): number {
  const drift = now.wall - before.wall - (now.monotonic - before.monotonic);
  return Math.abs(drift) > TOLERATED_DRIFT_MS ? drift : 0;
}

/** Both clocks now. */
export function readClocks(): ClockReading {
  return { monotonic: performance.now(), wall: Date.now() };
}

/**
 * Refuses a renew margin that leaves no time: it must be above 0 and below the time to live, both
 * in ms. Throws a Fault `LEASE_MARGIN`.
 */
export function requireMargin(ttl: number, margin: number): void {
  if (margin > 0 && margin < ttl) return;
  throw new Fault(
    "LEASE_MARGIN",
    `the lease renew margin of ${margin / 1000} s does not fit a lease of ${ttl / 1000} s`,
    {
      hint: "set --subnet-lease-renew-margin above zero and below --subnet-lease-ttl; a third of it is usual",
    },
  );
}
