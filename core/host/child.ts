import { describeError } from "../observe/fault.ts";
import { Backoff, sleep } from "../retry/backoff.ts";
import type { Child, ChildSpec } from "./child-spec.ts";
import { type RunningProcess, startProcess } from "./process.ts";

/** A process that ran for so long was fine: the pauses start over, ms. */
const FINE_AFTER_MS = 60_000;
/** What a process has to end when it is asked to, ms. */
const GRACE_MS = 3_000;

/** Keeps a process running until it is stopped, with growing pauses between its starts (1 s to 1 min). */
export function keepRunning(spec: ChildSpec): Child {
  const stopping = new AbortController();
  let current: RunningProcess | undefined;
  const loop = async () => {
    const backoff = new Backoff({ first: 1_000, max: 60_000 });
    while (!stopping.signal.aborted) {
      const begun = performance.now();
      const how = await once();
      if (stopping.signal.aborted) return;
      if (performance.now() - begun > FINE_AFTER_MS) backoff.reset();
      spec.ended?.(how);
      await sleep(backoff.next(), stopping.signal);
    }
  };
  const once = async (): Promise<string> => {
    try {
      const process = await startProcess(spec.file, spec);
      current = process;
      if (stopping.signal.aborted) process.kill("SIGKILL");
      spec.started?.(process.pid);
      return await process.ended;
    } catch (error) {
      return describeError(error);
    } finally {
      current = undefined;
    }
  };
  const running = loop();
  return {
    get pid() {
      return current?.pid;
    },
    async stop(signal = "SIGTERM") {
      stopping.abort();
      current?.kill(signal);
      const hard = setTimeout(() => current?.kill("SIGKILL"), GRACE_MS);
      await running;
      clearTimeout(hard);
    },
  };
}
