import { describeError, Fault } from "../observe/fault.ts";
import { type Outcome, runInGroup } from "./exec-group.ts";

export interface RunOptions {
  /** Standard input; none when absent. */
  readonly input?: string;
  /** Longest run time in ms, default 30,000. */
  readonly timeout?: number;
  /** Extra environment; the daemon's own is passed on. */
  readonly env?: Readonly<Record<string, string>>;
  /**
   * Runs it in a process group of its own, all of which is ended at the time-out: for a shell and its children. It is
   * over when it ends itself, whatever it leaves running, and of each output a MiB is kept.
   */
  readonly group?: boolean;
}

/** What a finished command printed. */
export interface Ran {
  readonly stdout: string;
  readonly stderr: string;
}

const DEFAULT_TIMEOUT_MS = 30_000;
/** A command that was ended at its time-out has this long to close its pipes; the end of a pipe can get lost. */
const PIPE_PATIENCE_MS = 2_000;

/**
 * Runs a command with an argument array, never through a shell. Throws Fault `EXEC_MISSING` when the file is not
 * installed, `EXEC_TIMEOUT` and `EXEC_FAILED` (with the first line of its standard error) otherwise.
 */
export async function run(file: string, args: readonly string[], options: RunOptions = {}): Promise<Ran> {
  const { group = false, timeout = DEFAULT_TIMEOUT_MS } = options;
  const outcome = await (group
    ? runInGroup(file, args, { ...options, timeout })
    : runAlone(file, args, { ...options, timeout }));
  if (outcome === undefined) throw timeoutFault(file, timeout);
  if (!outcome.failed) return { stdout: outcome.stdout, stderr: outcome.stderr };
  if (outcome.code === "ENOENT") {
    throw new Fault("EXEC_MISSING", `command "${file}" is not installed`, {
      hint: `Install the package that has ${file}.`,
    });
  }
  if (outcome.timedOut) throw timeoutFault(file, timeout, outcome);
  const end = outcome.exitCode ?? outcome.signal ?? outcome.code;
  const why = outcome.stderr || (outcome instanceof Error ? describeError(outcome) : "");
  const [firstLine = ""] = why.trim().split("\n");
  throw new Fault("EXEC_FAILED", `"${file} ${args.join(" ")}" ended with ${end}: ${firstLine}`, {
    cause: outcome,
  });
}

/** As {@link run} without a group; undefined when it was killed at the time-out, and its outputs did not end. */
async function runAlone(
  file: string,
  args: readonly string[],
  { input, timeout, env }: RunOptions & { readonly timeout: number },
): Promise<Outcome | undefined> {
  const { execa } = await import("execa");
  const running = execa(file, args, {
    reject: false,
    stdin: input === undefined ? "ignore" : "pipe",
    ...(input === undefined ? {} : { input }),
    timeout,
    ...(env === undefined ? {} : { env }),
    stripFinalNewline: false,
  });
  const limit = Promise.withResolvers<undefined>();
  const patience = setTimeout(limit.resolve, timeout + PIPE_PATIENCE_MS, undefined);
  const result = await Promise.race([running, limit.promise]);
  clearTimeout(patience);
  if (result === undefined) running.kill("SIGKILL");
  return result;
}

function timeoutFault(file: string, timeout: number, cause?: unknown): Fault {
  return new Fault("EXEC_TIMEOUT", `"${file}" did not finish within ${timeout} ms`, { cause });
}
