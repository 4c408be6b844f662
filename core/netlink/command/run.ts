import { describeError } from "../../observe/fault.ts";
import { EPERM } from "../errno.ts";
import type { Refusal } from "../faults.ts";
import { malformedFault, permissionFault, refusalFault } from "../faults.ts";
import type { Json } from "./json.ts";
import { refusalOf } from "./refusal.ts";

/**
 * Runs a command without a shell, as core/host/exec does: rejects on a non-zero exit with an error that has the
 * standard error as `stderr`, itself or its `cause`.
 */
export type Run = (
  file: string,
  args: readonly string[],
  options?: { readonly input?: string },
) => Promise<{ readonly stdout: string; readonly stderr: string }>;

/** What a command printed, whether or not it succeeded. */
export interface Attempt {
  readonly stdout: string;
  readonly stderr: string;
  readonly failed: boolean;
}

/** Runs a command that may fail in its own words; other errors (not installed, time-out) are thrown on. */
export async function attempt(
  run: Run,
  file: "ip" | "bridge" | "ethtool" | "wg" | "sh",
  args: readonly string[],
  input?: string,
): Promise<Attempt> {
  try {
    const { stdout, stderr } = await run(file, args, input === undefined ? {} : { input });
    return { stdout, stderr, failed: false };
  } catch (error) {
    const stderr = stderrOf(error) ?? stderrOf(error instanceof Error ? error.cause : undefined);
    if (stderr === undefined || stderr.trim() === "") throw error;
    return { stdout: "", stderr, failed: true };
  }
}

/** Runs a command for its effect; the refusal when it was refused. */
export async function command(
  run: Run,
  file: "ip" | "bridge",
  args: readonly string[],
): Promise<Refusal | undefined> {
  const { stderr, failed } = await attempt(run, file, args);
  return failed ? refusalOf(stderr) : undefined;
}

/**
 * The records a command prints as JSON, or its refusal. `what` is a verb phrase for messages. Throws Fault
 * `NETLINK_PERMISSION` and `NETLINK_MALFORMED`.
 */
export async function query(
  run: Run,
  file: "ip" | "bridge",
  args: readonly string[],
  what: string,
): Promise<{ readonly records: readonly Json[]; readonly refusal?: Refusal }> {
  const { stdout, stderr, failed } = await attempt(run, file, args);
  if (failed) {
    const refusal = refusalOf(stderr);
    if (refusal.errno === EPERM) throw permissionFault(what);
    return { records: [], refusal };
  }
  return { records: parseRecords(stdout, `${file} ${args.join(" ")}`) };
}

/** {@link query} for a list that exists always: any refusal is a Fault `NETLINK_REFUSED`. */
export async function list(
  run: Run,
  file: "ip" | "bridge",
  args: readonly string[],
  what: string,
): Promise<readonly Json[]> {
  const { records, refusal } = await query(run, file, args, what);
  if (refusal) throw refusalFault(what, refusal);
  return records;
}

function parseRecords(stdout: string, source: string): readonly Json[] {
  // Nothing at all is what some versions print for an empty list.
  if (stdout.trim() === "") return [];
  let parsed: unknown;
  try {
    parsed = JSON.parse(stdout);
  } catch (error) {
    throw malformedFault(`\`${source}\` printed no JSON: ${describeError(error)}`);
  }
  if (!Array.isArray(parsed)) throw malformedFault(`\`${source}\` printed no list`);
  // Filtered dumps of some versions hold empty records.
  return parsed.filter((record): record is Json => isRecord(record) && Object.keys(record).length > 0);
}

function isRecord(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function stderrOf(error: unknown): string | undefined {
  if (typeof error !== "object" || error === null || !("stderr" in error)) return undefined;
  return typeof error.stderr === "string" ? error.stderr : undefined;
}
