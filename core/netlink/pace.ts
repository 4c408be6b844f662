import { yieldToEventLoop } from "../retry/event-loop.ts";

/** Longest time to hold the event loop; leaves room below the 20 ms that other loops may be kept waiting. */
const HOLD_MS = 8;

/** Tells when it is time to yield: after `units` units of work or 8 ms, whichever is first. */
export class Pace {
  readonly #units: number;
  #done = 0;
  #since = performance.now();

  constructor(units: number) {
    this.#units = units;
  }

  /** Counts work done and yields if it is time. */
  async advance(done: number): Promise<void> {
    this.#done += done;
    if (this.#done < this.#units && performance.now() - this.#since < HOLD_MS) return;
    await yieldToEventLoop();
    this.#done = 0;
    this.#since = performance.now();
  }
}
