import type { Log } from "../observe/log.ts";

const STOPPING = ["SIGINT", "SIGTERM"] as const;

/**
 * The first SIGINT or SIGTERM aborts the returned signal, a second one kills the process at once. Our listener stays
 * until then: while a command runs, execa listens as well (signal-exit), and takes a signal that nobody else listens
 * to for the end of the process.
 */
export function stopOnSignal(log: Log): AbortSignal {
  const controller = new AbortController();
  const stop = (name: NodeJS.Signals) => {
    if (controller.signal.aborted) {
      process.removeAllListeners(name);
      process.kill(process.pid, name);
      return;
    }
    log.info(`${name} received, stopping; the data plane stays`);
    controller.abort();
  };
  for (const name of STOPPING) process.on(name, stop);
  return controller.signal;
}
