import type { Fault } from "../../observe/fault.ts";
import type { Health } from "../../observe/health.ts";

/** A failure that changes its words within this time is not told anew: endpoints fail in turn, each in its own way. */
const SAME_STORY_MS = 60_000;

/**
 * The trouble of one loop with etcd as a health finding: raised on the first failure, kept while tries fail, cleared
 * on success.
 */
export class Outage {
  readonly #health: Health;
  readonly #subject: string;
  #told: { code: string; at: number } | undefined;

  /** @param subject what suffers, e.g. `watching the other nodes`. */
  constructor(health: Health, subject: string) {
    this.#health = health;
    this.#subject = subject;
  }

  /** A try failed. */
  raise(fault: Fault): void {
    const now = performance.now();
    const told = this.#told;
    if (told && told.code === fault.code && now - told.at < SAME_STORY_MS) return;
    if (told && told.code !== fault.code) this.#health.clear(told.code, this.#subject);
    this.#told = { code: fault.code, at: now };
    this.#health.raise(
      {
        code: fault.code,
        severity: "error",
        title: "etcd cannot be used",
        text: fault.message,
        fix: fault.hint,
      },
      this.#subject,
    );
  }

  /** A try succeeded. */
  clear(): void {
    if (this.#told) this.#health.clear(this.#told.code, this.#subject);
    this.#told = undefined;
  }
}
