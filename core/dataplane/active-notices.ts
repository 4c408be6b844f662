import type { Prefix } from "../net/prefix.ts";
import { type Kernel, type Notice, ROUTE_PROTOCOL } from "../netlink/kernel.ts";
import { describeError, Fault } from "../observe/fault.ts";
import type { Log } from "../observe/log.ts";
import { Backoff, sleep } from "../retry/backoff.ts";
import { liesIn } from "./actual.ts";
import { RepairPacer } from "./pacer.ts";

/** What concerns a backend that acts itself. */
export interface Concern {
  /** Its devices; for one without any, no routes on devices are its concern. */
  readonly devices: ReadonlySet<string>;
  /** The external interface. */
  readonly external: string;
  /** Cluster networks. */
  readonly networks: readonly Prefix[];
}

/**
 * Whether a notice may mean that something of the backend is not as it made it, or should be made otherwise: its devices
 * and their addresses, the external interface (its MTU), and in our networks routes with our mark or on its devices.
 * Echoes of its own writes are among them.
 */
export function concerns(notice: Notice, { devices, external, networks }: Concern): boolean {
  switch (notice.kind) {
    case "link":
      return devices.has(notice.link.name) || notice.link.name === external;
    case "address":
      return devices.has(notice.address.dev);
    case "route": {
      const { dev, dst, protocol } = notice.route;
      if (!liesIn(dst, networks)) return false;
      // One on no device refuses packets: a guard, or what the operator wants.
      if (dev === undefined || devices.size > 0) return protocol === ROUTE_PROTOCOL || devices.has(dev ?? "");
      return false;
    }
    default:
      return false;
  }
}

export interface ListenInput {
  readonly kernel: Pick<Kernel, "notices">;
  readonly log: Log;
  readonly signal: AbortSignal;
  readonly concern: Concern;
  /** The backend has to look. */
  readonly disturbed: () => void;
}

/**
 * Calls `disturbed` 200 ms after notices that concern the backend, less often while that goes on and on, and whenever
 * notices may have been missed. Works until aborted; never rejects.
 */
export async function listenForBackend({
  kernel,
  log,
  signal,
  concern,
  disturbed,
}: ListenInput): Promise<void> {
  const backoff = new Backoff({ first: 100, max: 10_000 });
  const pacer = new RepairPacer();
  let due = false;
  const disturb = async () => {
    if (due) return;
    due = true;
    await sleep(pacer.delay(), signal);
    due = false;
    pacer.repaired();
    if (!signal.aborted) disturbed();
  };
  for (let first = true; !signal.aborted; first = false) {
    let reason = "kernel notices ended by themselves";
    try {
      const notices = kernel.notices(signal);
      // Before the first subscription nothing was missed that the first sync does not see.
      if (!first) void disturb();
      for await (const batch of notices) {
        backoff.reset();
        if (batch.some((notice) => concerns(notice, concern))) void disturb();
      }
    } catch (error) {
      const lost = error instanceof Fault && error.code === "NETLINK_OVERRUN";
      reason = lost ? "kernel notices were lost" : `kernel notices stopped: ${describeError(error)}`;
    }
    if (signal.aborted) return;
    if (backoff.tries === 0) log.warn(`${reason}; listening anew and asking the backend`);
    await sleep(backoff.next(), signal);
  }
}
