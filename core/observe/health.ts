import type { Finding } from "./finding.ts";
import type { Log } from "./log.ts";

/** A finding with what it is about and when it appeared. */
export interface ActiveFinding {
  readonly finding: Finding;
  /** Tells several findings of one code apart (a peer, a device); empty for the only one. */
  readonly subject: string;
  /** Wall clock, ms since 1970. */
  readonly since: number;
}

/** Told of each finding that appears, changes its text, or is over. */
export type HealthListener = (change: "raised" | "over", active: ActiveFinding) => void;

/**
 * The findings that hold right now. Every loop raises its problem here and clears it again, so that a problem is
 * logged once when it appears, once when its text changes, and once when it is over: never once per try.
 */
export class Health {
  readonly #active = new Map<string, ActiveFinding>();
  readonly #log: Log;
  #listener: HealthListener = () => {};

  constructor(log: Log) {
    this.#log = log;
  }

  /** Tells `listener`, and only it, from now on what it tells the log. */
  listen(listener: HealthListener): void {
    this.#listener = listener;
  }

  /** States that a problem holds. `subject` tells several findings of one code apart (a peer, a device). */
  raise(finding: Finding, subject = ""): void {
    const key = `${finding.code} ${subject}`;
    const known = this.#active.get(key);
    const active = { finding, subject, since: known?.since ?? Date.now() };
    this.#active.set(key, active);
    if (known?.finding.text === finding.text) return;
    const line = finding.severity === "error" ? "error" : finding.severity === "warning" ? "warn" : "info";
    this.#log[line](`${finding.title}: ${finding.text}`, {
      code: finding.code,
      fix: finding.fix,
      ...(subject ? { subject } : {}),
    });
    this.#listener("raised", active);
  }

  /** States that a problem is over; unknown ones are ignored. */
  clear(code: string, subject = ""): void {
    const key = `${code} ${subject}`;
    const known = this.#active.get(key);
    if (!known) return;
    this.#active.delete(key);
    const seconds = Math.round((Date.now() - known.since) / 1000);
    this.#log.info(`over: ${known.finding.title}`, { code, seconds, ...(subject ? { subject } : {}) });
    this.#listener("over", known);
  }

  /** All findings that hold, oldest first. */
  list(): readonly Finding[] {
    return [...this.#active.values()].map((entry) => entry.finding);
  }

  /** As {@link list}, with subject and age. */
  active(): readonly ActiveFinding[] {
    return [...this.#active.values()];
  }

  /** Whether a finding of this code holds, for any subject. */
  has(code: string): boolean {
    for (const entry of this.#active.values()) if (entry.finding.code === code) return true;
    return false;
  }
}
