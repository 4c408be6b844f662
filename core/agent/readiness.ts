import type { Severity } from "../observe/finding.ts";
import type { ActiveFinding } from "../observe/health.ts";

/** Why a node is not ready. */
export interface Reason {
  readonly code: string;
  /** What it is about where there may be several of one code (a peer, a loop), else empty. */
  readonly subject: string;
  readonly title: string;
  readonly text: string;
  readonly fix: string;
}

/** Everything that readiness follows from. */
export interface ReadinessInput {
  readonly phase: "starting" | "serving" | "stopping";
  /** Whether all peers known at the start of the session in force are in the kernel. */
  readonly synced: boolean;
  /** The own lease; `secondsLeft` is absent for a reservation. */
  readonly lease: { readonly state: string; readonly secondsLeft?: number } | undefined;
  /** Objects (or peers) that the data path refuses. */
  readonly failing: number;
  readonly findings: readonly ActiveFinding[];
}

const UNREADY: Severity = "error";

/**
 * Why the node is not ready, empty when it is: all peers have been programmed, no finding of severity error holds, the
 * lease is held, and nothing is refused in the data path. What a finding already says is not said twice.
 */
export function judgeReadiness(input: ReadinessInput): readonly Reason[] {
  const reasons = input.findings
    .filter(({ finding }) => finding.severity === UNREADY)
    .map(({ finding: { code, title, text, fix }, subject }) => ({ code, subject, title, text, fix }));
  const told = (prefix: string) => reasons.some(({ code }) => code.startsWith(prefix));
  const add = (code: string, title: string, text: string, fix: string) =>
    reasons.push({ code, subject: "", title, text, fix });

  if (input.phase === "stopping") add("STOPPING", "flanneld stops", "a stop signal came", "Start it again.");
  else if (input.phase === "starting") {
    add(
      "STARTING",
      "flanneld is not ready yet",
      "the start is not complete",
      "Wait; see its log if it takes long.",
    );
  } else if (!input.synced) {
    add(
      "NOT_SYNCED",
      "the peers are not programmed yet",
      "config or interface have changed, and the new state is being written",
      "Wait; see the log if it takes long.",
    );
  }
  const { lease } = input;
  if (lease && !isHeld(lease) && !told("LEASE_")) {
    const text = lease.state === "conflict" ? "another node has it" : "it has run out";
    add(
      "LEASE_LOST",
      "the lease of this node is not held",
      text,
      "See the log; it is taken back if that can be.",
    );
  }
  if (input.failing > 0 && !told("DATAPLANE_") && !told("CLOUD_")) {
    const text = `${input.failing} objects are not in place`;
    add("DATAPLANE_FAILING", "part of the data path is refused", text, "It is tried again by itself.");
  }
  return reasons;
}

function isHeld({ state, secondsLeft }: NonNullable<ReadinessInput["lease"]>): boolean {
  return state !== "conflict" && (secondsLeft === undefined || secondsLeft > 0);
}
