import type { Host } from "flannel/sdk";
import type { Environment } from "./environment.ts";
import type { CommandName, Options } from "./options.ts";
import { splitCommand } from "./split.ts";

/** One run of one of the commands. */
export interface Run {
  readonly name: CommandName;
  readonly environment: Environment;
  /** Handed over on standard input, with a newline behind it. */
  readonly input?: string;
  /** What it is about, for the log: a peer's key. */
  readonly peer?: string;
  /** Part of the stop itself, so that it is waited for although the daemon stops. */
  readonly final?: boolean;
}

/** How much of an output is logged or shown, characters. */
const LONGEST_SHOWN = 2_000;

/** Runs the commands of a config: through `sh -c`, or split into words. What they print goes to the log. */
export class Commands {
  readonly #options: Options;
  readonly #host: Host;

  constructor(options: Options, host: Host) {
    this.#options = options;
    this.#host = host;
  }

  /** Whether there is such a command. */
  has(name: CommandName): boolean {
    return this.#options[name].trim() !== "";
  }

  /**
   * Runs a command and returns its standard output. Throws an Error that says in one line how it failed; when the
   * daemon is stopped meanwhile it throws at once, and the command goes on to its own end.
   */
  async run(run: Run): Promise<string> {
    const { name, environment, input = "", peer, final = false } = run;
    const { log, signal } = this.#host;
    const about = peer === undefined ? {} : { peer };
    const running = this.#start(name, environment, input);
    running.catch(() => {});
    try {
      const { stdout, stderr } = await (final ? running : unlessStopped(running, signal));
      // Of PreStartupCommand the output is data for the peers, not talk.
      const talk = name === "PreStartupCommand" ? stderr : stdout + stderr;
      if (talk.trim() !== "") log.info(`${name}: ${shorten(talk)}`, about);
      return stdout;
    } catch (error) {
      const printed = printedBy(error);
      if (printed !== "") log.warn(`${name} failed: ${shorten(printed)}`, about);
      throw new Error(`${name} ${this.#describe(error, printed)}`, { cause: error });
    }
  }

  #start(name: CommandName, added: Environment, input: string) {
    const { Shell, Timeout } = this.#options;
    const command = this.#options[name];
    const environment = { ...(process.env as Environment), ...added };
    const [file = "", ...args] = Shell ? ["sh", "-c", command] : splitCommand(command, environment);
    return this.#host.run(file, args, {
      input: `${input}\n`,
      env: added,
      timeout: Timeout * 1_000,
      group: true,
    });
  }

  #describe(error: unknown, printed: string): string {
    const { code, exitCode } = detailsOf(error);
    if (code === "EXEC_TIMEOUT") return `took longer than ${this.#options.Timeout} s and was ended`;
    const last = printed.trimEnd().split("\n").at(-1) ?? "";
    if (exitCode === undefined) return `failed: ${last || messageOf(error)}`;
    return `ended with ${exitCode}${last === "" ? "" : `: ${shorten(last)}`}`;
  }
}

async function unlessStopped<T>(running: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const stop = () => reject(new Error("was not waited for: the daemon stops"));
  if (signal.aborted) stop();
  signal.addEventListener("abort", stop, { once: true });
  try {
    return await Promise.race([running, promise]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

/** Both outputs of a command that failed, as far as the error has them. */
function printedBy(error: unknown): string {
  const { stdout, stderr } = detailsOf(error);
  return `${text(stdout)}${text(stderr)}`.trim();
}

/** The fields of an error and of its cause: the run that failed. */
function detailsOf(error: unknown): Readonly<Record<string, unknown>> {
  const cause = error instanceof Error ? error.cause : undefined;
  const { stdout, stderr, exitCode } = (cause ?? error ?? {}) as Record<string, unknown>;
  return { stdout, stderr, exitCode, code: (error as { code?: unknown } | undefined)?.code };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function shorten(value: string): string {
  const trimmed = value.trim();
  return trimmed.length > LONGEST_SHOWN ? `${trimmed.slice(0, LONGEST_SHOWN)}…` : trimmed;
}
