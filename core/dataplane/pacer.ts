/** Quiet time after a notice before looking, so that a burst of changes is repaired once. */
const QUIET_MS = 200;
/** Repairs that may follow each other at full speed, and how fast that allowance grows back. */
const ALLOWANCE = 20;
const REGAIN_MS = 3_000;

/**
 * Paces repairs: normally 200 ms after a disturbance; against a process that keeps undoing our work at most one
 * repair per 3 s, so the two do not burn the machine together.
 */
export class RepairPacer {
  readonly #now: () => number;
  #allowance = ALLOWANCE;
  #counted: number;

  /** `now` is a monotonic clock in ms. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
    this.#counted = now();
  }

  /** How long to wait before looking at a disturbance, ms: when the allowance is used up, until one repair is back. */
  delay(): number {
    this.#regain();
    return Math.max(QUIET_MS, Math.ceil((1 - this.#allowance) * REGAIN_MS));
  }

  /** Whether somebody is undoing our work faster than we are allowed to repair it. */
  get exhausted(): boolean {
    this.#regain();
    return this.#allowance < 1;
  }

  /** Whether the fight is over: half of the allowance is back. */
  get rested(): boolean {
    this.#regain();
    return this.#allowance >= ALLOWANCE / 2;
  }

  /** Counts a repair that had to change something. */
  repaired(): void {
    this.#regain();
    this.#allowance = Math.max(0, this.#allowance - 1);
  }

  #regain(): void {
    const now = this.#now();
    this.#allowance = Math.min(ALLOWANCE, this.#allowance + (now - this.#counted) / REGAIN_MS);
    this.#counted = now;
  }
}
