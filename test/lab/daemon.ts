import { closeSync, existsSync, openSync } from "node:fs";
import { join, resolve } from "node:path";
import { type Host, UNDERLAY } from "./host.ts";
import { LogFile, type LogLine } from "./log-file.ts";
import { NotifySocket } from "./notify-socket.ts";
import { until } from "./until.ts";
import { ENGINE_ENV } from "./vm/engine.ts";

/** The executable under test: `FLANNELD`, else the one the build leaves in `dist/bin`. */
export function executable(): string {
  return resolve(process.env.FLANNELD ?? join(import.meta.dir, "../../dist/bin/flanneld"));
}

export interface DaemonOptions {
  /** `--etcd-endpoints`; several joined by commas. Left out when the daemon gets its leases elsewhere. */
  readonly endpoints?: string;
  /** `--iface`; default the underlay interface of every host. */
  readonly iface?: string;
  /** Further flags, after ours, so they win. */
  readonly flags?: readonly string[];
  /** Added to a minimal environment (PATH, NOTIFY_SOCKET). */
  readonly env?: Readonly<Record<string, string>>;
  /** `--node-id`; absent lets the daemon find its own. */
  readonly nodeId?: string;
  /** Another executable than {@link executable}'s. */
  readonly file?: string;
  /** A session of its own, so that it survives this process (a demo that is kept). */
  readonly detached?: boolean;
}

/** How a daemon ended. */
export interface Exit {
  /** Exit code, null when a signal ended it. */
  readonly code: number | null;
  readonly signal: string | null;
  /** From the signal sent to the end. */
  readonly milliseconds: number;
}

/**
 * One run of the compiled daemon in a host's namespace, exactly as an operator runs it: flags, environment,
 * signals, notify socket and log are all there is. A restart is a second `Daemon`.
 */
export class Daemon implements AsyncDisposable {
  readonly host: Host;
  /**
   * Resolves with the milliseconds from start to `READY=1`; rejects with the last log lines when the daemon ends
   * first or is disposed.
   */
  readonly ready: Promise<number>;
  readonly #child: Bun.Subprocess;
  readonly #notify: NotifySocket;
  readonly #log: LogFile;
  static #runs = 0;

  private constructor(host: Host, child: Bun.Subprocess, notify: NotifySocket, log: LogFile) {
    this.host = host;
    this.#child = child;
    this.#notify = notify;
    this.#log = log;
    const started = performance.now();
    this.ready = until(() => (notify.has("READY=1") ? performance.now() - started : this.#failWhenEnded()), {
      message: () => `${host.name}: no READY=1\n${log.tail()}`,
      deadline: 120_000,
      interval: 5,
    }).then((result) => {
      if (result instanceof Error) throw result;
      return result;
    });
    this.ready.catch(() => {});
  }

  /** Starts the daemon; await {@link ready} for its READY=1. */
  static start(host: Host, options: DaemonOptions = {}): Daemon {
    const file = options.file ?? executable();
    if (!existsSync(file)) {
      throw new Error(`no executable at ${file}: build it (npm run build) or set FLANNELD`);
    }
    const run = ++Daemon.#runs;
    const notify = new NotifySocket(join(host.directory, `notify-${run}`));
    const path = join(host.directory, `daemon-${run}.log`);
    const output = openSync(path, "a");
    try {
      const child = Bun.spawn(["ip", "netns", "exec", host.namespace.name, file, ...flags(host, options)], {
        stdin: "ignore",
        stdout: output,
        stderr: output,
        cwd: host.directory,
        env: { ...ENGINE_ENV, PATH: process.env.PATH ?? "", NOTIFY_SOCKET: notify.path, ...options.env },
        ...(options.detached === true ? { detached: true } : {}),
      });
      return new Daemon(host, child, notify, new LogFile(path));
    } catch (error) {
      notify[Symbol.dispose]();
      throw error;
    } finally {
      closeSync(output);
    }
  }

  get pid(): number {
    return this.#child.pid;
  }

  /** Whether it has not ended. */
  get running(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Log lines so far. */
  get lines(): readonly LogLine[] {
    return this.#log.lines;
  }

  /** Where the log is written. */
  get logPath(): string {
    return this.#log.path;
  }

  /** The last log lines, for messages. */
  tail(count?: number): string {
    return this.#log.tail(count);
  }

  /** Datagrams sent to the notify socket so far. */
  get notifications(): readonly string[] {
    this.#notify.has("");
    return this.#notify.messages;
  }

  /**
   * Resolves with the first log line for which `predicate` holds, from line `after` (a former `lines.length`) on.
   * Rejects at the deadline (ms, default 30,000) or when the daemon ends without it.
   */
  async waitForLog(
    predicate: (line: LogLine) => boolean,
    { after = 0, deadline = 20_000 }: { after?: number; deadline?: number } = {},
  ): Promise<LogLine> {
    const found = await until(() => this.lines.slice(after).find(predicate) ?? this.#failWhenEnded(), {
      message: () => `${this.host.name}: no such log line\n${this.tail()}`,
      deadline,
    });
    if (found instanceof Error) throw found;
    return found;
  }

  /** Resolves when the daemon has ended by itself, or rejects at the deadline (ms, default 30,000). */
  async ended(deadline = 30_000): Promise<Exit> {
    const asked = performance.now();
    await until(() => !this.running, {
      message: () => `${this.host.name}: the daemon still runs\n${this.tail()}`,
      deadline,
      interval: 5,
    });
    return {
      code: this.#child.exitCode,
      signal: this.#child.signalCode === null ? null : String(this.#child.signalCode),
      milliseconds: Math.round(performance.now() - asked),
    };
  }

  /** Sends a signal (default SIGTERM) and waits for the end. */
  stop(signal: NodeJS.Signals = "SIGTERM", deadline = 20_000): Promise<Exit> {
    this.signal(signal);
    return this.ended(deadline);
  }

  /** SIGKILL, as the out-of-memory killer does it. */
  kill(): Promise<Exit> {
    return this.stop("SIGKILL");
  }

  /** SIGSTOP: a suspended machine. */
  pause(): void {
    this.signal("SIGSTOP");
  }

  /** SIGCONT. */
  resume(): void {
    this.signal("SIGCONT");
  }

  /** Sends any signal; nothing happens when the daemon has ended. */
  signal(signal: NodeJS.Signals): void {
    if (this.running) this.#child.kill(signal);
  }

  #failWhenEnded(): Error | undefined {
    if (this.running) return undefined;
    const how = this.#child.signalCode ?? `code ${this.#child.exitCode}`;
    return new Error(`${this.host.name}: the daemon ended (${how})\n${this.tail()}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.running) this.#child.kill("SIGKILL");
    await this.#child.exited;
    await this.ready.catch(() => {});
    this.#notify[Symbol.dispose]();
    this.#log[Symbol.dispose]();
  }
}

function flags(host: Host, options: DaemonOptions): string[] {
  return [
    ...(options.endpoints === undefined ? [] : [`--etcd-endpoints=${options.endpoints}`]),
    `--subnet-file=${host.subnetFile}`,
    `--iface=${options.iface ?? UNDERLAY}`,
    ...(options.nodeId === undefined ? [] : [`--node-id=${options.nodeId}`]),
    ...(options.flags ?? []),
  ];
}
