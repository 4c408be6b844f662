/**
 * Loaded into a daemon with `BUN_OPTIONS=--preload`: writes a line to LOOP_PROBE_FILE for every time the event loop
 * could not take its turn, see loop-blocks.ts. Imports nothing but Node's modules, so that it costs next to nothing.
 */
import { openSync, readSync, writeSync } from "node:fs";

/** Time between two turns that are asked for, ms. */
const INTERVAL_MS = 2;
/** Shorter delays are the timers' own imprecision, ms. */
const LEAST_MS = 4;

const out = openSync(process.env.LOOP_PROBE_FILE ?? "/dev/null", "a");
const scheduler = openSync("/proc/thread-self/schedstat", "r");
const buffer = Buffer.alloc(128);
let last = performance.now();
let waited = readWaited();

setInterval(() => {
  const now = performance.now();
  const waitedNow = readWaited();
  const late = now - last - INTERVAL_MS;
  if (late > LEAST_MS) {
    writeSync(out, `${JSON.stringify({ end: Date.now(), late, waited: waitedNow - waited })}\n`);
  }
  last = performance.now();
  waited = waitedNow;
}, INTERVAL_MS).unref();

/** Milliseconds this thread was ready to run but had no CPU (proc_pid_schedstat: the second number, ns). */
function readWaited(): number {
  const length = readSync(scheduler, buffer, 0, buffer.length, 0);
  return Number(buffer.toString("latin1", 0, length).split(" ")[1]) / 1e6;
}
