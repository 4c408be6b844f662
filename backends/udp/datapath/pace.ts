/** A limit on how often something is done: `rate` times per second on average, `burst` at once. */
export class Pace {
  readonly #rate: number;
  readonly #burst: number;
  readonly #now: () => number;
  #left: number;
  #at: number;

  /** @param now milliseconds of a clock that never goes back. */
  constructor(rate: number, burst: number, now: () => number = () => performance.now()) {
    this.#rate = rate;
    this.#burst = burst;
    this.#now = now;
    this.#left = burst;
    this.#at = now();
  }

  /** Whether it may be done now. */
  take(): boolean {
    const now = this.#now();
    this.#left = Math.min(this.#burst, this.#left + ((now - this.#at) * this.#rate) / 1000);
    this.#at = now;
    if (this.#left < 1) return false;
    this.#left -= 1;
    return true;
  }
}
