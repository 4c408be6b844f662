import type { CloudError, CloudErrorKind } from "../../../plugins/sdk/cloud.ts";
import { describeError, Fault } from "../../observe/fault.ts";
import type { Finding } from "../../observe/finding.ts";

/** A finding, and what tells it from others of its code. */
export interface CloudFinding {
  readonly finding: Finding;
  readonly subject: string;
}

const KINDS: Readonly<Record<CloudErrorKind, readonly [code: string, title: string]>> = {
  denied: ["CLOUD_DENIED", "the cloud does not permit a call"],
  credentials: ["CLOUD_CREDENTIALS", "there are no valid credentials for the cloud"],
  throttled: ["CLOUD_THROTTLED", "the cloud wants fewer calls"],
  missing: ["CLOUD_NOT_FOUND", "the cloud does not know something that is named"],
  full: ["CLOUD_TABLE_FULL", "a limit of the cloud is reached"],
  clock: ["CLOUD_CLOCK", "the cloud refuses calls because of this host's clock"],
  metadata: ["CLOUD_METADATA", "the metadata service does not answer"],
  unreachable: ["CLOUD_UNREACHABLE", "the cloud's API does not answer"],
  refused: ["CLOUD_REFUSED", "the cloud refuses a call"],
};

/** Kinds after which the other changes are not worth trying now. */
const HOPELESS: ReadonlySet<CloudErrorKind> = new Set([
  "credentials",
  "throttled",
  "clock",
  "metadata",
  "unreachable",
]);

/**
 * Whether anything thrown is a `CloudError`. By shape: a drop-in that was bundled with a contract of its own throws
 * another class.
 */
export function isCloudError(error: unknown): error is CloudError {
  return (
    error instanceof Error && error.name === "CloudError" && "kind" in error && String(error.kind) in KINDS
  );
}

/** What a call that failed tells the operator. Every kind of it makes the node unready: its route may be missing. */
export function findingOf(error: unknown): CloudFinding {
  if (!isCloudError(error)) {
    const fault = error instanceof Fault ? error : undefined;
    const fix = fault?.hint || "It is tried again by itself with growing pauses.";
    const finding = failure("CLOUD_REFUSED", KINDS.refused[1], describeError(error), fix);
    return { finding: fault ? { ...finding, code: fault.code } : finding, subject: "" };
  }
  const [code, title] = KINDS[error.kind];
  return { finding: failure(code, title, `${error.call}: ${error.message}`, error.fix), subject: error.call };
}

/** The store could not be asked which routes are of nodes that are gone. */
export function staleRoutes(error: unknown): CloudFinding {
  const finding: Finding = {
    code: "CLOUD_STALE_ROUTES",
    severity: "warning",
    title: "routes of nodes that are gone cannot be removed",
    text: describeError(error),
    fix: "The store has to let this node write <prefix>/leaders/cloud-routes; or set RemoveStaleRoutes to false.",
  };
  return { finding, subject: "" };
}

/** What the backend has on the host itself could not be set right. */
export function brokenHost(error: unknown): CloudFinding {
  const hint = error instanceof Fault ? error.hint : "";
  const title = "the data path cannot be repaired";
  const fix = hint || "It is tried again by itself.";
  return { finding: failure("DATAPLANE_BROKEN", title, describeError(error), fix), subject: "" };
}

/** Whether further calls would fail the same way. */
export function isHopeless(error: unknown): boolean {
  return !isCloudError(error) || HOPELESS.has(error.kind);
}

function failure(code: string, title: string, text: string, fix: string): Finding {
  return { code, severity: "error", title, text, fix };
}
