import type { Pulse } from "../../observe/loops.ts";
import { sleep } from "../../retry/backoff.ts";

/** Longest time in which nothing is heard of the loop, ms: as long as one sleep may be. */
const LONGEST_SILENCE_MS = 3_600_000;

/** Resolves after `ms`, however long that is, or when the signal aborts; tells `pulse` at least once an hour. */
export async function rest(ms: number, signal: AbortSignal, pulse: Pulse): Promise<void> {
  const end = performance.now() + ms;
  for (let left = ms; left > 0 && !signal.aborted; left = end - performance.now()) {
    pulse(Math.min(left, LONGEST_SILENCE_MS));
    await sleep(left, signal);
  }
}
