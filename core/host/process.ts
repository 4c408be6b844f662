import { describeError, Fault } from "../observe/fault.ts";
import { run } from "./exec.ts";

export interface ProcessOptions {
  readonly args?: readonly string[];
  /** Extra environment; the daemon's own is passed on. */
  readonly env?: Readonly<Record<string, string>>;
  /** Called with each line that it prints, to either output. */
  readonly line?: (text: string) => void;
}

/** A process that runs until it ends or is ended. */
export interface RunningProcess {
  readonly pid: number;
  /** How it ended, in words: `exit code 1`, `SIGSEGV`. Never rejects. */
  readonly ended: Promise<string>;
  /** Sends a signal; nothing happens when it has ended. */
  kill(signal: NodeJS.Signals): void;
}

let deathSignal: Promise<readonly string[]> | undefined;

/**
 * Starts a process that is not waited for. It is killed when the daemon dies, by whatever cause, where `setpriv` of
 * util-linux (2.33 and later) is installed: prctl(2), PR_SET_PDEATHSIG. Throws Fault `EXEC_MISSING` or `EXEC_FAILED`.
 */
export async function startProcess(file: string, options: ProcessOptions = {}): Promise<RunningProcess> {
  const { execa } = await import("execa");
  deathSignal ??= findDeathSignal();
  const [first = "", ...rest] = [...(await deathSignal), file, ...(options.args ?? [])];
  const child = execa(first, rest, {
    reject: false,
    stdin: "ignore",
    all: true,
    buffer: false,
    ...(options.env === undefined ? {} : { env: options.env }),
  });
  if (child.pid === undefined) {
    const { code, ...result } = await child;
    if (code !== "ENOENT") throw new Fault("EXEC_FAILED", `"${file}": ${describeError(result)}`);
    throw new Fault("EXEC_MISSING", `command "${file}" is not installed`, {
      hint: `Install the package that has ${file}.`,
    });
  }
  const reading = readLines(child.iterable({ from: "all" }), options.line ?? (() => {}));
  const ended = child.then(async ({ exitCode, signal, originalMessage }) => {
    await reading;
    return signal ?? (exitCode === undefined ? (originalMessage ?? "unknown") : `exit code ${exitCode}`);
  });
  return {
    pid: child.pid,
    ended,
    kill: (signal) => {
      child.kill(signal);
    },
  };
}

async function readLines(lines: AsyncIterable<unknown>, take: (text: string) => void): Promise<void> {
  try {
    for await (const line of lines) take(String(line));
  } catch {
    // How it ended is told apart from what it printed.
  }
}

/** What a command line has to begin with for a process to be killed with us; nothing where that cannot be had. */
async function findDeathSignal(): Promise<readonly string[]> {
  const prefix = ["setpriv", "--pdeathsig", "KILL", "--"];
  try {
    await run("setpriv", [...prefix.slice(1), "true"], { timeout: 5_000 });
    return prefix;
  } catch {
    return [];
  }
}
