import type { Finding } from "./finding.ts";
import type { Findings } from "./own-findings.ts";

/** Findings of something that is looked at as a whole, again and again: what the latest look does not find is over. */
export class LatestFindings {
  readonly #health: Findings;
  /** Code and subject of what the last look found, by both. */
  #shown: ReadonlyMap<string, readonly [code: string, subject: string]> = new Map();

  constructor(health: Findings) {
    this.#health = health;
  }

  /** Raises all of them, each with its text for subject where `byText`, and clears the others of the last time. */
  show(findings: readonly Finding[], byText = false): void {
    const entries = findings.map((finding) => ({ finding, subject: byText ? finding.text : "" }));
    const now = new Map(
      entries.map(({ finding: { code }, subject }) => [`${code} ${subject}`, [code, subject] as const]),
    );
    for (const [key, [code, subject]] of this.#shown) if (!now.has(key)) this.#health.clear(code, subject);
    for (const { finding, subject } of entries) this.#health.raise(finding, subject);
    this.#shown = now;
  }
}
