import type { Fault } from "../observe/fault.ts";
import type { Finding } from "../observe/finding.ts";

/** A fault for people: code and message, further faults, and what to do. Never a stack trace. */
export function renderFault(fault: Fault): string {
  const lines = [fault, ...fault.others].map(
    (one) => `error ${one.code}: ${one.message}\n${hintLine(one.hint)}`,
  );
  return `flanneld: ${lines.join("flanneld: ")}`;
}

/** A warning for people. */
export function renderWarning(finding: Finding): string {
  return `flanneld: warning ${finding.code}: ${finding.text}\n${hintLine(finding.fix)}`;
}

function hintLine(hint: string): string {
  return hint === "" ? "" : `  hint: ${hint}\n`;
}
