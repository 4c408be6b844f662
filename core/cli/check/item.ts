import { Fault } from "../../observe/fault.ts";
import type { Finding } from "../../observe/finding.ts";

/** One thing that was looked at. */
export interface CheckItem {
  readonly name: string;
  /** What was seen, in a few words. */
  readonly detail: string;
  /** What is wrong with it; empty when nothing is. */
  readonly findings: readonly Finding[];
}

/** An item in order, or with findings. */
export function item(name: string, detail: string, findings: readonly Finding[] = []): CheckItem {
  return { name, detail, findings };
}

/** What a fault says, as a finding. */
export function findingOf(error: unknown, code: string, title: string): Finding {
  const fault = error instanceof Fault ? error : undefined;
  const text = error instanceof Error ? error.message : String(error);
  return { code: fault?.code ?? code, severity: "error", title, text, fix: fault?.hint ?? "" };
}
