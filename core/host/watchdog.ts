import { sleep } from "../retry/backoff.ts";
import { notifyServiceManager } from "./notify.ts";

/** What the service manager asks for, from its environment (sd_watchdog_enabled(3)). */
export interface WatchdogEnvironment {
  readonly WATCHDOG_USEC?: string | undefined;
  readonly WATCHDOG_PID?: string | undefined;
}

/** Time between two signs of life, ms: half of what is allowed. Undefined when nobody asks this process for any. */
export function watchdogPeriod(environment: WatchdogEnvironment, pid = process.pid): number | undefined {
  const microseconds = Number(environment.WATCHDOG_USEC);
  if (!Number.isSafeInteger(microseconds) || microseconds <= 0) return undefined;
  if (environment.WATCHDOG_PID !== undefined && Number(environment.WATCHDOG_PID) !== pid) return undefined;
  return Math.max(1, Math.floor(microseconds / 2_000));
}

/**
 * Gives the service manager signs of life (`WATCHDOG=1`) as long as `alive` says so, until aborted. A daemon that
 * hangs gives none and is restarted. Returns at once when nobody asks.
 */
export async function feedWatchdog(
  alive: () => boolean,
  signal: AbortSignal,
  { WATCHDOG_USEC, WATCHDOG_PID }: WatchdogEnvironment = process.env as WatchdogEnvironment,
): Promise<void> {
  const period = watchdogPeriod({ WATCHDOG_USEC, WATCHDOG_PID });
  while (period !== undefined && !signal.aborted) {
    if (alive()) notifyServiceManager("WATCHDOG=1");
    await sleep(period, signal);
  }
}
