import type { Host } from "flannel/sdk";

/** Pause between two looks, ms. One look is one dump of the device: some 2 ms with 1,000 peers. */
const LOOK_EVERY_MS = 5_000;

/**
 * Asks core for a sync when `differs` says that the peers of a device are not the wanted ones: neither the kernel nor a
 * process tells anybody when they are changed (`wg set`). Ends with the daemon. A look that fails says nothing here:
 * the next sync meets the same error, and tells it.
 */
export function watchPeers(host: Pick<Host, "wake" | "signal">, differs: () => Promise<boolean>): void {
  let looking = false;
  const look = async () => {
    if (looking) return;
    looking = true;
    try {
      if (await differs()) host.wake();
    } catch {
      host.wake();
    } finally {
      looking = false;
    }
  };
  const timer = setInterval(() => void look(), LOOK_EVERY_MS);
  timer.unref();
  host.signal.addEventListener("abort", () => clearInterval(timer), { once: true });
}
