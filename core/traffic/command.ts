import type { Ran, RunOptions } from "../host/exec.ts";
import { Fault } from "../observe/fault.ts";

/** Runs a command without a shell and rejects on a non-zero exit, as core/host/exec does. */
export type Run = (file: string, args: readonly string[], options?: RunOptions) => Promise<Ran>;

/** Longest time a tool may take, ms; a restore additionally waits for the lock. A healthy one takes some 10 ms. */
const TIMEOUT_MS = 20_000;

/** What a command printed, whether or not it succeeded. */
export interface Attempt extends Ran {
  readonly failed: boolean;
}

/**
 * Runs a tool in the C locale, with a time-out. A failure in the tool's own words is a result; not installed and
 * timed out are thrown on.
 */
export async function attempt(
  run: Run,
  file: string,
  args: readonly string[],
  input?: string,
): Promise<Attempt> {
  const options = { timeout: TIMEOUT_MS, env: { LC_ALL: "C" }, ...(input === undefined ? {} : { input }) };
  try {
    return { ...(await run(file, args, options)), failed: false };
  } catch (error) {
    if (error instanceof Fault && error.code !== "EXEC_FAILED") throw error;
    const stderr = stderrOf(error) ?? stderrOf(error instanceof Error ? error.cause : undefined);
    if (stderr === undefined) throw error;
    return { stdout: "", stderr, failed: true };
  }
}

/** A tool that said no: what could not be done, and its first line of explanation. */
export function refusedFault(what: string, tool: string, stderr: string): Fault {
  const reason = stderr.trim().split("\n")[0] || "no reason given";
  return new Fault("TRAFFIC_REFUSED", `cannot ${what}: ${tool} says "${reason}"`, {
    hint: `It is tried again and again; try the same with ${tool} by hand, and look at the kernel log (dmesg).`,
  });
}

function stderrOf(error: unknown): string | undefined {
  if (typeof error !== "object" || error === null || !("stderr" in error)) return undefined;
  return typeof error.stderr === "string" ? error.stderr : undefined;
}
