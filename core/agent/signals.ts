import type { Log } from "../observe/log.ts";

const STOPPING = ["SIGINT", "SIGTERM"] as const;

/**
 * The first SIGINT or SIGTERM aborts the returned signal and restores the default handling, so that a second one
 * kills the process at once.
 */
export function stopOnSignal(log: Log): AbortSignal {
  const controller = new AbortController();
  const stop = (name: NodeJS.Signals) => {
    for (const each of STOPPING) process.removeListener(each, stop);
    log.info(`${name} received, stopping; the data plane stays`);
    controller.abort();
  };
  for (const name of STOPPING) process.on(name, stop);
  return controller.signal;
}
