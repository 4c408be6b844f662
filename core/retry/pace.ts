import { yieldToEventLoop } from "./event-loop.ts";

/** Longest time to hold the event loop; leaves room below the 20 ms that other loops may be kept waiting. */
const HOLD_MS = 8;

/** Tells long work when it is time to yield: after `units` units of it or 8 ms, whichever is first. */
export class Pace {
  readonly #units: number;
  readonly #now: () => number;
  #done = 0;
  #since: number;

  /** Without `units` the time alone counts; `now` is a monotonic clock in ms. */
  constructor(units = Number.POSITIVE_INFINITY, now: () => number = () => performance.now()) {
    this.#units = units;
    this.#now = now;
    this.#since = now();
  }

  /** Counts work done; whether it is time to {@link rest}. */
  isDue(done = 1): boolean {
    this.#done += done;
    return this.#done >= this.#units || this.#now() - this.#since >= HOLD_MS;
  }

  /** Lets the event loop have its turn, and starts over. */
  async rest(): Promise<void> {
    await yieldToEventLoop();
    this.#done = 0;
    this.#since = this.#now();
  }

  /** Counts work done and yields if it is time. */
  async advance(done: number): Promise<void> {
    if (this.isDue(done)) await this.rest();
  }
}
