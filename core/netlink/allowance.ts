import type { KernelChange } from "./kernel.ts";

/** Time one send may take: the kernel works off a whole datagram before it returns, and the event loop waits. */
const SEND_MS = 5;
/** Where each kind of change starts; doubled while the kernel is quick. */
const FIRST = 16;
/** Larger sends gain nothing (some 3 µs per change either way), but bound what a sudden slow stretch may cost. */
const MOST = 256;

/**
 * How many changes may go into one send. What a change costs the kernel differs a hundredfold by kind and by the
 * size of the table (a plain IPv4 route or a nexthop in use: 100-400 µs at 20,000 peers; a new neighbour: 2 µs), so
 * it is learned per kind while applying, from small sends upwards.
 */
export class Allowance {
  readonly #most: number;
  readonly #limits = new Map<string, number>();
  readonly #present = new Set<string>();
  #lastKind = "";
  #lastAction = "";
  #limit: number;

  /** `most`: upper bound whatever the speed. */
  constructor(most: number) {
    this.#most = Math.max(1, Math.min(MOST, most));
    this.#limit = this.#most;
  }

  /** Starts a send. */
  begin(): void {
    this.#present.clear();
    this.#lastKind = "";
    this.#limit = this.#most;
  }

  /** Whether the change may still join the `count` messages of this send; the first always may. */
  admits({ action, object }: KernelChange, count: number): boolean {
    if (object.kind !== this.#lastKind || action !== this.#lastAction) {
      const key = `${action} ${object.kind}`;
      const limit = Math.min(this.#limit, this.#limits.get(key) ?? FIRST);
      if (count > 0 && count >= limit) return false;
      this.#lastKind = object.kind;
      this.#lastAction = action;
      this.#limit = limit;
      this.#present.add(key);
      return true;
    }
    return count === 0 || count < this.#limit;
  }

  /** Tells how long the send of `count` messages took. */
  settle(count: number, elapsedMs: number): void {
    const affordable = Math.floor((SEND_MS * count) / Math.max(elapsedMs, 0.001));
    for (const key of this.#present) {
      const grown = 2 * (this.#limits.get(key) ?? FIRST);
      this.#limits.set(key, Math.max(1, Math.min(this.#most, grown, affordable)));
    }
  }
}
