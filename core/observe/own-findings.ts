import type { Finding } from "./finding.ts";
import type { Health } from "./health.ts";

/** Where findings are raised and cleared. */
export type Findings = Pick<Health, "raise" | "clear">;

/**
 * The findings of something that ends before the daemon does: what it has raised is over when it ends, and what it says
 * afterwards (a look that was still under way) is not heard. Who takes its place looks for itself.
 */
export class OwnFindings implements Findings {
  readonly #health: Findings;
  /** Code and subject of what holds, by both. */
  readonly #raised = new Map<string, readonly [code: string, subject: string]>();
  #ended = false;

  constructor(health: Findings) {
    this.#health = health;
  }

  /** As `Health.raise`. */
  raise(finding: Finding, subject = ""): void {
    if (this.#ended) return;
    this.#raised.set(`${finding.code} ${subject}`, [finding.code, subject]);
    this.#health.raise(finding, subject);
  }

  /** As `Health.clear`. */
  clear(code: string, subject = ""): void {
    if (this.#ended) return;
    this.#raised.delete(`${code} ${subject}`);
    this.#health.clear(code, subject);
  }

  /** Clears what is raised, and hears nothing from now on. */
  end(): void {
    this.#ended = true;
    for (const [code, subject] of this.#raised.values()) this.#health.clear(code, subject);
    this.#raised.clear();
  }
}
