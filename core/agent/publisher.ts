import type { LeaseAttrs } from "../lease/lease.ts";
import type { LeaseStore } from "../lease/store.ts";
import { toFault } from "../observe/fault.ts";
import type { Health } from "../observe/health.ts";
import { Backoff, sleep } from "../retry/backoff.ts";

/** Rewrites the own lease when what peers must know has changed; the newest value wins, failures are retried. */
export class Publisher {
  readonly #store: LeaseStore;
  readonly #health: Health;
  readonly #signal: AbortSignal;
  #wanted: LeaseAttrs | undefined;
  #running = false;

  constructor(store: LeaseStore, health: Health, signal: AbortSignal) {
    this.#store = store;
    this.#health = health;
    this.#signal = signal;
  }

  /** States what the lease should say. */
  publish(attrs: LeaseAttrs): void {
    this.#wanted = attrs;
    if (!this.#running) void this.#run();
  }

  async #run(): Promise<void> {
    this.#running = true;
    const backoff = new Backoff({ first: 500, max: 30_000 });
    while (this.#wanted && !this.#signal.aborted) {
      const attrs = this.#wanted;
      try {
        await this.#store.updateAttrs(attrs, this.#signal);
        if (this.#wanted === attrs) this.#wanted = undefined;
        this.#health.clear("LEASE_OUTDATED");
        backoff.reset();
      } catch (error) {
        if (this.#signal.aborted) break;
        const fault = toFault(error, "LEASE_UPDATE");
        this.#health.raise({
          code: "LEASE_OUTDATED",
          severity: "error",
          title: "the own lease says something outdated",
          text: fault.message,
          fix: fault.hint || "It is written again by itself; peers use the old values meanwhile.",
        });
        await sleep(backoff.next(), this.#signal);
      }
    }
    // Whoever takes over acquires the lease with what it should say by then.
    if (this.#signal.aborted) this.#health.clear("LEASE_OUTDATED");
    this.#running = false;
  }
}
