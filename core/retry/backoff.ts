/** Longest single timer: `setTimeout` above 2^31-1 ms fires at once, and an hour lets clock jumps be noticed. */
const LONGEST_SLEEP_MS = 3_600_000;

export interface BackoffOptions {
  /** First delay, ms. */
  readonly first: number;
  /** Upper bound of a delay, ms. */
  readonly max: number;
  /** Growth per try, default 2. */
  readonly factor?: number;
}

/** Growing delays with jitter: try n waits between half and all of `min(max, first * factor^n)`. */
export class Backoff {
  readonly #options: BackoffOptions;
  #tries = 0;

  constructor(options: BackoffOptions) {
    this.#options = options;
  }

  /** Number of delays handed out since the last reset. */
  get tries(): number {
    return this.#tries;
  }

  /** The next delay in ms. */
  next(): number {
    const { first, max, factor = 2 } = this.#options;
    const ceiling = Math.min(max, first * factor ** Math.min(this.#tries, 30));
    this.#tries += 1;
    return ceiling / 2 + Math.random() * (ceiling / 2);
  }

  /** Starts over after a success. */
  reset(): void {
    this.#tries = 0;
  }
}

/**
 * Resolves after `ms` (capped at one hour: callers loop and look at the clock again), or at once when the signal
 * aborts; never rejects. The abort listener is removed again, so long-lived signals do not collect listeners.
 */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, Math.min(Math.max(ms, 0), LONGEST_SLEEP_MS));
    signal?.addEventListener("abort", done, { once: true });
  });
}
