import { describeError } from "../observe/fault.ts";
import { Backoff, sleep } from "../retry/backoff.ts";
import type { Child, ChildSpec } from "./child-spec.ts";
import { adoptLasting, type LastingSpec, startLasting } from "./lasting.ts";
import { type RunningProcess, startProcess } from "./process.ts";

/** A process that ran for so long was fine: the pauses start over, ms. */
const FINE_AFTER_MS = 60_000;
/** What a process has to end when it is asked to, ms. */
const GRACE_MS = 3_000;

/**
 * Keeps a process running until it is stopped, with growing pauses between its starts (1 s to 1 min). One that lasts is
 * taken over from an earlier daemon, where it fits.
 */
export function keepRunning(spec: ChildSpec): Child {
  const over = new AbortController();
  let current: RunningProcess | undefined;
  let left = false;
  const once = async (isFirst: boolean): Promise<string> => {
    try {
      current = await begin(spec, isFirst, over.signal);
      if (!current) return "not started";
      // What was asked for while it began.
      if (left) current.release();
      else if (over.signal.aborted) current.kill("SIGKILL");
      return await current.ended;
    } catch (error) {
      return describeError(error);
    } finally {
      current = undefined;
    }
  };
  const loop = async () => {
    const backoff = new Backoff({ first: 1_000, max: 60_000 });
    for (let isFirst = true; !over.signal.aborted; isFirst = false) {
      const begun = performance.now();
      const how = await once(isFirst);
      if (over.signal.aborted) return;
      if (performance.now() - begun > FINE_AFTER_MS) backoff.reset();
      spec.ended?.(how);
      await sleep(backoff.next(), over.signal);
    }
  };
  const running = loop();
  return {
    get pid() {
      return current?.pid;
    },
    async stop(signal = "SIGTERM") {
      over.abort();
      current?.kill(signal);
      const hard = setTimeout(() => current?.kill("SIGKILL"), GRACE_MS);
      await running;
      clearTimeout(hard);
    },
    async leave() {
      left = true;
      over.abort();
      current?.release();
      await running;
    },
  };
}

/** Takes over what an earlier daemon has started, the first time, or starts the process. */
async function begin(
  spec: ChildSpec,
  isFirst: boolean,
  signal: AbortSignal,
): Promise<RunningProcess | undefined> {
  if (isLasting(spec) && isFirst) {
    const adopted = await adoptLasting(spec);
    if (adopted) {
      spec.lasting.adopted?.(adopted.pid);
      return adopted;
    }
    if (signal.aborted) return undefined;
  }
  spec.starting?.();
  const started = isLasting(spec) ? await startLasting(spec) : await startProcess(spec.file, spec);
  spec.started?.(started.pid);
  return started;
}

function isLasting(spec: ChildSpec): spec is LastingSpec {
  return spec.lasting !== undefined;
}
