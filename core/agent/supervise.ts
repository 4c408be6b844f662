import { describeError } from "../observe/fault.ts";
import type { Health } from "../observe/health.ts";
import type { Loops, Pulse } from "../observe/loops.ts";
import { Backoff, sleep } from "../retry/backoff.ts";

/** A loop that has run for this long since it was started again is taken to be well, ms. */
const SETTLED_MS = 10_000;

export interface Supervision {
  readonly health: Health;
  readonly loops: Loops;
  readonly signal: AbortSignal;
  /** After how long a loop that was started again is taken to be well, ms; default 10 s. */
  readonly settled?: number;
}

/**
 * Runs a loop of the daemon until aborted: if it throws or returns early it is started again with growing back-off,
 * and a finding names it until it has run well for a while. No loop dies quietly. Never rejects.
 */
export async function supervise(
  name: string,
  loop: (pulse: Pulse) => Promise<void>,
  { health, loops, signal, settled = SETTLED_MS }: Supervision,
): Promise<void> {
  const backoff = new Backoff({ first: 500, max: 30_000 });
  while (!signal.aborted) {
    const pulse = loops.open(name);
    const started = performance.now();
    const well = setTimeout(() => health.clear("LOOP_RESTARTED", name), settled);
    let reason = "it ended by itself";
    try {
      await loop(pulse);
    } catch (error) {
      reason = describeError(error);
    } finally {
      clearTimeout(well);
      pulse(Number.POSITIVE_INFINITY);
    }
    if (signal.aborted) return;
    if (performance.now() - started > 60_000) backoff.reset();
    loops.noteRestart(name);
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
