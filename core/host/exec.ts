import { describeError, Fault } from "../observe/fault.ts";

export interface RunOptions {
  /** Standard input; none when absent. */
  readonly input?: string;
  /** Longest run time in ms, default 30,000. */
  readonly timeout?: number;
  /** Extra environment; the daemon's own is passed on. */
  readonly env?: Readonly<Record<string, string>>;
  /** Runs it in a process group of its own, all of which is ended at the time-out: for a shell and its children. */
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
/** What a process group has after SIGTERM before SIGKILL. */
const GROUP_GRACE_MS = 1_000;

/**
 * Runs a command with an argument array, never through a shell. Throws Fault `EXEC_MISSING` when the file is not
 * installed, `EXEC_TIMEOUT` and `EXEC_FAILED` (with the first line of its standard error) otherwise.
 */
export async function run(file: string, args: readonly string[], options: RunOptions = {}): Promise<Ran> {
  const { execa } = await import("execa");
  const { group = false, timeout = DEFAULT_TIMEOUT_MS } = options;
  const running = execa(file, args, {
    reject: false,
    stdin: options.input === undefined ? "ignore" : "pipe",
    ...(options.input === undefined ? {} : { input: options.input }),
    timeout,
    ...(options.env === undefined ? {} : { env: options.env }),
    ...(group ? { detached: true } : {}),
    stripFinalNewline: false,
  });
  const whole = group ? endGroupAfter(running.pid, timeout) : undefined;
  const limit = Promise.withResolvers<undefined>();
  const patience = setTimeout(limit.resolve, timeout + PIPE_PATIENCE_MS, undefined);
  const result = await Promise.race([running, limit.promise]);
  clearTimeout(patience);
  clearTimeout(whole);
  if (result === undefined) {
    if (!(group && signalGroup(running.pid, "SIGKILL"))) running.kill("SIGKILL");
    throw timeoutFault(file, timeout);
  }
  if (!result.failed) return { stdout: result.stdout, stderr: result.stderr };
  if (result.code === "ENOENT") {
    throw new Fault("EXEC_MISSING", `command "${file}" is not installed`, {
      hint: `Install the package that has ${file}.`,
    });
  }
  if (result.timedOut) throw timeoutFault(file, timeout, result);
  const firstLine = (result.stderr || describeError(result)).trim().split("\n")[0] ?? "";
  throw new Fault(
    "EXEC_FAILED",
    `"${file} ${args.join(" ")}" ended with ${result.exitCode ?? result.signal}: ${firstLine}`,
    {
      cause: result,
    },
  );
}

/** `kill -TERM -PID` after `ms`, and `kill -KILL -PID` when some of the group are still there a moment later. */
function endGroupAfter(pid: number | undefined, ms: number): Timer {
  return setTimeout(() => {
    if (signalGroup(pid, "SIGTERM")) setTimeout(() => signalGroup(pid, "SIGKILL"), GROUP_GRACE_MS).unref();
  }, ms);
}

/** Sends a signal to a process group; false when there is none any more. */
function signalGroup(pid: number | undefined, signal: NodeJS.Signals): boolean {
  if (pid === undefined) return false;
  try {
    return process.kill(-pid, signal);
  } catch {
    return false;
  }
}

function timeoutFault(file: string, timeout: number, cause?: unknown): Fault {
  return new Fault("EXEC_TIMEOUT", `"${file}" did not finish within ${timeout} ms`, { cause });
}
