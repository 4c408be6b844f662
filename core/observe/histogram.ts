/** Upper bounds in seconds for network calls: from a local answer to a time-out. */
export const LATENCY_BOUNDS: readonly number[] = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5,
];

/** How often values fell into fixed ranges. */
export class Histogram {
  readonly #bounds: readonly number[];
  readonly #counts: number[];
  #sum = 0;

  /** @param bounds upper bounds (inclusive), ascending; a last range without bound is added. */
  constructor(bounds: readonly number[] = LATENCY_BOUNDS) {
    this.#bounds = bounds;
    this.#counts = new Array<number>(bounds.length + 1).fill(0);
  }

  /** Takes in one value. */
  observe(value: number): void {
    const at = this.#bounds.findIndex((bound) => value <= bound);
    const range = at < 0 ? this.#bounds.length : at;
    this.#counts[range] = (this.#counts[range] ?? 0) + 1;
    this.#sum += value;
  }

  /** Number of values at or below each bound, ascending; the last bound is infinite. */
  get cumulative(): readonly (readonly [bound: number, count: number])[] {
    let total = 0;
    return this.#counts.map((number, at) => {
      total += number;
      return [this.#bounds[at] ?? Number.POSITIVE_INFINITY, total] as const;
    });
  }

  /** Number of values. */
  get count(): number {
    return this.#counts.reduce((total, number) => total + number, 0);
  }

  /** Sum of the values. */
  get sum(): number {
    return this.#sum;
  }
}
