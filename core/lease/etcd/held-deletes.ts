/**
 * Removals that wait. While etcd was away leases may have run out although their nodes live: such nodes take their
 * subnets back within moments of etcd's return, and until then their routes must not be torn down. So a removal seen
 * soon after trouble with etcd is held back for a while, and forgotten when the key comes back.
 */
export class HeldDeletes {
  readonly #holdMs: number;
  readonly #onDue: (keys: readonly string[]) => void;
  readonly #due = new Map<string, number>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** @param onDue called with keys that did not come back in time. */
  constructor(holdMs: number, onDue: (keys: readonly string[]) => void) {
    this.#holdMs = holdMs;
    this.#onDue = onDue;
  }

  /** Holds the removal of keys back; what is held already keeps its time. */
  hold(keys: readonly string[]): void {
    const due = performance.now() + this.#holdMs;
    for (const key of keys) if (!this.#due.has(key)) this.#due.set(key, due);
    this.#schedule();
  }

  /** The key is back. */
  release(key: string): void {
    this.#due.delete(key);
  }

  /** Forgets everything held. */
  clear(): void {
    this.#due.clear();
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #schedule(): void {
    if (this.#timer !== undefined) return;
    const [next] = this.#due.values();
    if (next === undefined) return;
    this.#timer = setTimeout(() => this.#expire(), Math.max(1, next - performance.now()));
  }

  #expire(): void {
    this.#timer = undefined;
    const now = performance.now();
    const keys = [...this.#due].filter(([, due]) => due <= now).map(([key]) => key);
    for (const key of keys) this.#due.delete(key);
    if (keys.length > 0) this.#onDue(keys);
    this.#schedule();
  }
}
