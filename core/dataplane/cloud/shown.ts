import type { Health } from "../../observe/health.ts";
import type { CloudFinding } from "./finding.ts";

/** The findings of one driver: they end with it, and what is still under way then shows nothing any more. */
export class ShownFindings {
  readonly #health: Health;
  #shown: readonly CloudFinding[] = [];
  #over = false;

  constructor(health: Health) {
    this.#health = health;
  }

  /** Raises what holds now, and clears what does not any more. */
  show(findings: readonly CloudFinding[]): void {
    if (this.#over) return;
    const is = (one: CloudFinding) => (other: CloudFinding) =>
      one.finding.code === other.finding.code && one.subject === other.subject;
    for (const old of this.#shown) {
      if (!findings.some(is(old))) this.#health.clear(old.finding.code, old.subject);
    }
    for (const { finding, subject } of findings) this.#health.raise(finding, subject);
    this.#shown = findings;
  }

  /** Clears all of them for good: the health outlives the driver, and its successor looks for itself. */
  end(): void {
    this.show([]);
    this.#over = true;
  }
}
