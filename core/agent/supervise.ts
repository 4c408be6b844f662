import { describeError } from "../observe/fault.ts";
import type { Health } from "../observe/health.ts";
import { Backoff, sleep } from "../retry/backoff.ts";

/** A loop that has run for this long since it was started again is taken to be well, ms. */
const SETTLED_MS = 10_000;

/**
 * Runs a loop of the daemon until aborted: if it throws or returns early it is started again with growing back-off,
 * and a finding names it until it has run well for `settled` ms. No loop dies quietly. Never rejects.
 */
export async function supervise(
  name: string,
  loop: () => Promise<void>,
  health: Health,
  signal: AbortSignal,
  settled = SETTLED_MS,
): Promise<void> {
  const backoff = new Backoff({ first: 500, max: 30_000 });
  while (!signal.aborted) {
    const started = performance.now();
    const well = setTimeout(() => health.clear("LOOP_RESTARTED", name), settled);
    let reason = "it ended by itself";
    try {
      await loop();
    } catch (error) {
      reason = describeError(error);
    } finally {
      clearTimeout(well);
    }
    if (signal.aborted) return;
    if (performance.now() - started > 60_000) backoff.reset();
    health.raise(
      {
        code: "LOOP_RESTARTED",
        severity: "error",
        title: `the ${name} loop had to be started again`,
        text: reason,
        fix: "It runs again by itself; please report this with the log around it.",
      },
      name,
    );
    await sleep(backoff.next(), signal);
  }
}
