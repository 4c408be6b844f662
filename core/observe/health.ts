import type { Finding } from "./finding.ts";
import type { Log } from "./log.ts";

/**
 * The findings that hold right now. Every loop raises its problem here and clears it again, so that a problem is
 * logged once when it appears, once when its text changes, and once when it is over: never once per try.
 */
export class Health {
  readonly #active = new Map<string, { finding: Finding; since: number }>();
  readonly #log: Log;

  constructor(log: Log) {
    this.#log = log;
  }

  /** States that a problem holds. `subject` tells several findings of one code apart (a peer, a device). */
  raise(finding: Finding, subject = ""): void {
    const key = `${finding.code} ${subject}`;
    const known = this.#active.get(key);
    this.#active.set(key, { finding, since: known?.since ?? Date.now() });
    if (known?.finding.text === finding.text) return;
    const line = finding.severity === "error" ? "error" : finding.severity === "warning" ? "warn" : "info";
    this.#log[line](`${finding.title}: ${finding.text}`, {
      code: finding.code,
      fix: finding.fix,
      ...(subject ? { subject } : {}),
    });
  }

  /** States that a problem is over; unknown ones are ignored. */
  clear(code: string, subject = ""): void {
    const key = `${code} ${subject}`;
    const known = this.#active.get(key);
    if (!known) return;
    this.#active.delete(key);
    const seconds = Math.round((Date.now() - known.since) / 1000);
    this.#log.info(`over: ${known.finding.title}`, { code, seconds, ...(subject ? { subject } : {}) });
  }

  /** All findings that hold, oldest first. */
  list(): readonly Finding[] {
    return [...this.#active.values()].map((entry) => entry.finding);
  }

  /** Whether a finding of this code holds, for any subject. */
  has(code: string): boolean {
    for (const entry of this.#active.values()) if (entry.finding.code === code) return true;
    return false;
  }
}
