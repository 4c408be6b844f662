import { Fault } from "../observe/fault.ts";
import { Pace } from "../retry/pace.ts";
import { Allowance } from "./allowance.ts";
import { describeErrno, EINVAL, ENODEV, EPERM } from "./errno.ts";
import type { Exchange } from "./exchange.ts";
import { deviceOf, encodeChange } from "./families/change.ts";
import { permissionFault, type Refusal } from "./faults.ts";
import type { ChangeFailure, KernelChange } from "./kernel.ts";
import { isAlreadySo } from "./outcome.ts";

/** Bytes of one send: larger ones gain nothing, and the kernel works a datagram off without letting go. */
export const BATCH_BYTES = 32 * 1024;
/** Changes between two yields to the event loop. */
const STRIDE = 1000;
/** Socket buffer one refusal may take in the kernel (truesize of a small skb with its text), bytes. */
const REFUSAL_BYTES = 2048;
/** Messages per send after answers were lost. */
const CAREFUL = 8;

/** A batch on its way: which change each message came from. */
interface Flight {
  readonly first: number;
  readonly positions: number[];
}

/** What filling one send needs and leaves behind. */
interface Round {
  readonly devices: ReadonlyMap<string, number>;
  readonly allowance: Allowance;
  readonly flight: Flight;
  readonly refused: Map<number, Refusal>;
}

/** Applies changes over one exchange. */
export class Batch {
  readonly #exchange: Exchange;
  readonly #indexOf: (dev: string) => number | undefined;
  /** Most messages whose refusals all fit the receive buffer: one that does not fit is dropped silently. */
  #most: number;

  /** `indexOf` asks the kernel for a device's index; it must not use the same exchange. */
  constructor(exchange: Exchange, indexOf: (dev: string) => number | undefined) {
    this.#exchange = exchange;
    this.#indexOf = indexOf;
    this.#most = Math.min(STRIDE, Math.floor(exchange.socket.receiveBuffer / REFUSAL_BYTES));
  }

  /** See Kernel.apply. Throws Fault `NETLINK_PERMISSION` when the kernel lets us change nothing. */
  async apply(changes: readonly KernelChange[]): Promise<ChangeFailure[]> {
    const failures: ChangeFailure[] = [];
    const devices = this.#resolve(changes);
    const pace = new Pace(STRIDE);
    let allowance = new Allowance(this.#most);
    for (let at = 0; at < changes.length; ) {
      const refused = new Map<number, Refusal>();
      const from = at;
      const flight: Flight = { first: this.#exchange.reserve(STRIDE), positions: [] };
      at = this.#fill(changes, from, { devices, allowance, flight, refused });
      if (!this.#send(flight, allowance, refused)) {
        allowance = new Allowance(this.#most);
        at = from;
        continue;
      }
      for (const [index, refusal] of [...refused].sort(([a], [b]) => a - b)) {
        const change = changes[index];
        if (!change || isAlreadySo(change, refusal)) continue;
        if (refusal.errno === EPERM) throw permissionFault("change the network configuration");
        const text = describeErrno(refusal.errno, refusal.text);
        failures.push({ index, change, errno: refusal.errno, text });
      }
      await pace.advance(at - from);
    }
    return failures;
  }

  /** Index of every device named, looked up once; 0 for a missing one. */
  #resolve(changes: readonly KernelChange[]): Map<string, number> {
    const devices = new Map<string, number>();
    let last: string | undefined;
    for (const change of changes) {
      const dev = deviceOf(change);
      if (dev === undefined || dev === last) continue;
      last = dev;
      if (!devices.has(dev)) devices.set(dev, this.#indexOf(dev) ?? 0);
    }
    return devices;
  }

  /** Encodes changes from `from` on until the batch is full; where to go on. */
  #fill(
    changes: readonly KernelChange[],
    from: number,
    { devices, allowance, flight, refused }: Round,
  ): number {
    const { builder } = this.#exchange;
    builder.clear();
    allowance.begin();
    let at = from;
    let lastDev: string | undefined;
    let lastIndex = 0;
    for (; at < changes.length && at - from < STRIDE; at++) {
      const change = changes[at];
      if (!change) continue;
      if (builder.full || !allowance.admits(change, builder.count)) break;
      const dev = deviceOf(change);
      if (dev !== undefined && dev !== lastDev) {
        lastDev = dev;
        lastIndex = devices.get(dev) ?? 0;
      }
      if (dev !== undefined && lastIndex === 0) {
        refused.set(at, { errno: ENODEV, text: `there is no device "${dev}"` });
        continue;
      }
      try {
        encodeChange(builder, (flight.first + builder.count) >>> 0, change, lastIndex);
        flight.positions.push(at);
      } catch (error) {
        builder.cancel();
        if (!(error instanceof Fault) || error.code !== "NETLINK_BAD_OBJECT") throw error;
        refused.set(at, { errno: EINVAL, text: error.message });
      }
    }
    return at;
  }

  /** False when answers were lost: the same changes must be sent again, fewer at a time. */
  #send({ first, positions }: Flight, allowance: Allowance, refused: Map<number, Refusal>): boolean {
    const count = positions.length;
    if (count === 0) return true;
    const started = performance.now();
    try {
      this.#exchange.flush((first + count - 1) >>> 0, (sequence, refusal) => {
        const position = positions[(sequence - first) >>> 0];
        if (position !== undefined) refused.set(position, refusal);
      });
    } catch (error) {
      const lost = error instanceof Fault && error.code === "NETLINK_OVERRUN";
      if (!lost || this.#most <= CAREFUL) throw error;
      this.#most = CAREFUL;
      return false;
    }
    allowance.settle(count, performance.now() - started);
    return true;
  }
}
