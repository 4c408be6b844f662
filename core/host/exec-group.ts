import { sleep } from "../retry/backoff.ts";
import { yieldToEventLoop } from "../retry/event-loop.ts";

/** How a command ended. */
export interface Outcome {
  readonly failed: boolean;
  readonly stdout: string;
  readonly stderr: string;
  readonly timedOut?: boolean;
  /** Of the system, where the command could not be started. */
  readonly code?: string | undefined;
  readonly exitCode?: number | undefined;
  readonly signal?: string | number | undefined;
}

export interface GroupOptions {
  readonly input?: string;
  /** ms. */
  readonly timeout: number;
  readonly env?: Readonly<Record<string, string>>;
}

/** What a process group has after SIGTERM before SIGKILL. */
const GROUP_GRACE_MS = 1_000;
/** What a command printed before its end is there once nothing has come for this long; waited for so long at most. */
const QUIET_MS = 100;
const QUIET_WITHIN_MS = 2_000;
/** Bytes of an output that are kept; more is read and dropped. */
const MOST_KEPT = 1024 * 1024;

/**
 * Runs a command in a process group of its own, all of which is ended at the time-out: a shell and its children. It is
 * over when it ends itself: what it leaves running goes on, even with our pipes open, which are read and dropped then.
 * Never rejects.
 */
export async function runInGroup(
  file: string,
  args: readonly string[],
  { input, timeout, env }: GroupOptions,
): Promise<Outcome> {
  const child = start(file, args, input, env);
  if ("code" in child) return { failed: true, stdout: "", stderr: "", code: child.code };
  const outputs = [new Output(child.stdout), new Output(child.stderr)] as const;
  let timedOut = false;
  const late = Promise.withResolvers<void>();
  const limit = setTimeout(async () => {
    timedOut = true;
    await endGroup(child.pid);
    late.resolve();
  }, timeout);
  await Promise.race([child.exited, late.promise]);
  clearTimeout(limit);
  await untilQuiet(outputs);
  const [stdout, stderr] = [outputs[0].take(), outputs[1].take()];
  const { exitCode, signalCode } = child;
  return {
    failed: timedOut || exitCode !== 0,
    stdout,
    stderr,
    timedOut,
    ...(signalCode === null ? { exitCode: exitCode ?? undefined } : { signal: signalCode }),
  };
}

function start(
  file: string,
  args: readonly string[],
  input: string | undefined,
  env: Readonly<Record<string, string>> | undefined,
) {
  try {
    return Bun.spawn([file, ...args], {
      stdin: input === undefined ? "ignore" : Buffer.from(input),
      stdout: "pipe",
      stderr: "pipe",
      detached: true,
      env: { ...process.env, ...env },
    });
  } catch (error) {
    return { code: (error as { code?: string }).code ?? String(error) };
  }
}

/** `kill -TERM -PID`, and `kill -KILL -PID` when some of the group are still there a moment later. */
async function endGroup(pid: number): Promise<void> {
  const end = performance.now() + GROUP_GRACE_MS;
  if (!signalGroup(pid, "SIGTERM")) return;
  while (signalGroup(pid, 0) && performance.now() < end) await sleep(GROUP_GRACE_MS / 20);
  signalGroup(pid, "SIGKILL");
}

/** Sends a signal to a process group, 0 for none; false when there is none any more. */
function signalGroup(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-pid, signal);
  } catch {
    return false;
  }
}

/** One output of a command, read until its end whoever has it. */
class Output {
  readonly ended: Promise<void>;
  #kept: Uint8Array[] | undefined = [];
  #bytes = 0;
  /** Pieces that have come. */
  pieces = 0;

  constructor(stream: ReadableStream<Uint8Array>) {
    this.ended = this.#read(stream);
  }

  /** What has come until now; what comes later is dropped. */
  take(): string {
    const text = Buffer.concat(this.#kept ?? []).toString();
    this.#kept = undefined;
    return text;
  }

  async #read(stream: ReadableStream<Uint8Array>): Promise<void> {
    try {
      for await (const piece of stream) {
        this.pieces += 1;
        this.#bytes += piece.length;
        if (this.#bytes <= MOST_KEPT) this.#kept?.push(piece);
      }
    } catch {
      // How the command ended is told apart from what it printed.
    }
  }
}

/** Until the outputs are closed, or have nothing to say for a moment because somebody else holds them open. */
async function untilQuiet(outputs: readonly Output[]): Promise<void> {
  const closed = Promise.all(outputs.map(({ ended }) => ended)).then(() => true);
  const count = () => outputs.reduce((sum, { pieces }) => sum + pieces, 0);
  const end = performance.now() + QUIET_WITHIN_MS;
  for (let seen = -1; seen !== count() && performance.now() < end; ) {
    seen = count();
    if (await Promise.race([closed, sleep(QUIET_MS)])) return;
    // After a pause of the whole process the timer is due before what waits is read.
    await yieldToEventLoop();
  }
}
