import { describeError, Fault } from "../observe/fault.ts";

export interface RunOptions {
  /** Standard input; none when absent. */
  readonly input?: string;
  /** Longest run time in ms, default 30,000. */
  readonly timeout?: number;
  /** Extra environment; the daemon's own is passed on. */
  readonly env?: Readonly<Record<string, string>>;
}

/** What a finished command printed. */
export interface Ran {
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Runs a command with an argument array, never through a shell. Throws Fault `EXEC_MISSING` when the file is not
 * installed, `EXEC_TIMEOUT` and `EXEC_FAILED` (with the first line of its standard error) otherwise.
 */
export async function run(file: string, args: readonly string[], options: RunOptions = {}): Promise<Ran> {
  const { execa } = await import("execa");
  const result = await execa(file, args, {
    reject: false,
    stdin: options.input === undefined ? "ignore" : "pipe",
    ...(options.input === undefined ? {} : { input: options.input }),
    timeout: options.timeout ?? 30_000,
    ...(options.env === undefined ? {} : { env: options.env }),
    stripFinalNewline: false,
  });
  if (!result.failed) return { stdout: result.stdout, stderr: result.stderr };
  if (result.code === "ENOENT") {
    throw new Fault("EXEC_MISSING", `command "${file}" is not installed`, {
      hint: `Install the package that has ${file}.`,
    });
  }
  if (result.timedOut) {
    throw new Fault("EXEC_TIMEOUT", `"${file}" did not finish within ${options.timeout ?? 30_000} ms`);
  }
  const firstLine = (result.stderr || describeError(result)).trim().split("\n")[0] ?? "";
  throw new Fault(
    "EXEC_FAILED",
    `"${file} ${args.join(" ")}" ended with ${result.exitCode ?? result.signal}: ${firstLine}`,
    {
      cause: result,
    },
  );
}
