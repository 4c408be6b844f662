import { closeSync } from "node:fs";
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
  /** Looks after it no longer: `ended` resolves, and a process that lasts lives on. */
  release(): void;
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
  if (child.pid === undefined) throw faultOf(file, await child);
  const reading = readLines(child.iterable({ from: "all" }), options.line ?? (() => {}));
  const exited = child.then(async (result) => {
    await reading;
    return describeEnd(result);
  });
  const released = Promise.withResolvers<string>();
  return {
    pid: child.pid,
    ended: Promise.race([exited, released.promise]),
    kill: (signal) => {
      child.kill(signal);
    },
    release: () => released.resolve("released"),
  };
}

/** A process that lives on when the daemon ends. */
export interface DetachedProcess {
  readonly pid: number;
  /** As {@link RunningProcess.ended}; nothing waits for it but who awaits this. */
  readonly ended: Promise<string>;
}

/** The runtime makes the first three files of a process wait when they are full: this one is the fourth at first. */
const PRINT_TO_FOURTH = 'exec "$0" "$@" >&3 2>&3 3>&-';

/**
 * Starts a process in a session of its own (setsid(2)) that prints to the open file `output`, which is closed here. One
 * that is not there ends with exit code 127.
 */
export function startDetached(
  file: string,
  { args = [], env }: Omit<ProcessOptions, "line">,
  output: number,
): DetachedProcess {
  try {
    // Not by execa, which would have what is printed come through us.
    const child = Bun.spawn(["sh", "-c", PRINT_TO_FOURTH, file, ...args], {
      stdio: ["ignore", "ignore", "ignore", output],
      detached: true,
      env: { ...process.env, ...env },
    });
    child.unref();
    return { pid: child.pid, ended: child.exited.then(() => describeEnd(outcomeOf(child))) };
  } finally {
    closeSync(output);
  }
}

function outcomeOf({ exitCode, signalCode }: Bun.Subprocess): Outcome {
  return signalCode === null ? { exitCode: exitCode ?? undefined } : { signal: signalCode };
}

/** What is told of a process that has ended, or was never started. */
interface Outcome {
  readonly code?: string | undefined;
  readonly exitCode?: number | undefined;
  readonly signal?: string | number | undefined;
  readonly originalMessage?: string | undefined;
}

function faultOf(file: string, { code, ...result }: Outcome): Fault {
  if (code !== "ENOENT") return new Fault("EXEC_FAILED", `"${file}": ${describeError(result)}`);
  return new Fault("EXEC_MISSING", `command "${file}" is not installed`, {
    hint: `Install the package that has ${file}.`,
  });
}

function describeEnd({ exitCode, signal, originalMessage }: Outcome): string {
  if (signal !== undefined) return String(signal);
  return exitCode === undefined ? (originalMessage ?? "unknown") : `exit code ${exitCode}`;
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
