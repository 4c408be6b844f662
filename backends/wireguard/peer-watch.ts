import type { Host } from "flannel/sdk";

/** Pause between two looks, ms. One look is one dump of the device: some 2 ms with 1,000 peers. */
const LOOK_EVERY_MS = 5_000;

/**
 * Asks core for a sync when `differs` says that the peers of a device are not the wanted ones: neither the kernel nor a
 * process tells anybody when they are changed (`wg set`). A look that fails says nothing here: the next sync meets the
 * same error, and tells it. Returns what ends it; it ends with the daemon, too.
 */
export function watchPeers(
  host: Pick<Host, "wake" | "signal">,
  differs: () => Promise<boolean>,
  every = LOOK_EVERY_MS,
): () => void {
  let looking = false;
  let ended = false;
  const look = async () => {
    if (looking) return;
    looking = true;
    const wakes = await differs().catch(() => true);
    looking = false;
    if (wakes && !ended) host.wake();
  };
  const timer = setInterval(() => void look(), every);
  timer.unref();
  const end = () => {
    ended = true;
    clearInterval(timer);
    host.signal.removeEventListener("abort", end);
  };
  host.signal.addEventListener("abort", end, { once: true });
  return end;
}
