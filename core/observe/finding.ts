/** How much a finding matters: `error` makes the node unready, `warning` and `info` do not. */
export type Severity = "info" | "warning" | "error";

/**
 * A user-visible problem as a declared value (plain data, survives `structuredClone`).
 * `code` is stable; `title` is one line; `text` says what was seen; `fix` says what to do.
 */
export interface Finding {
  readonly code: string;
  readonly severity: Severity;
  readonly title: string;
  readonly text: string;
  readonly fix: string;
}
