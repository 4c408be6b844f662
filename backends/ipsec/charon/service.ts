import { rmSync } from "node:fs";
import type { Child, Host } from "flannel/sdk";
import { ViciClient } from "../vici/client.ts";
import { listOf } from "../vici/message.ts";
import { clearRemains, forgetCharon, rememberCharon } from "./remains.ts";

/** Where charon listens unless strongswan.conf says otherwise (vici.socket). */
export const SOCKET = "/var/run/charon.vici";
/** Name of the file that remembers our charon, beside the subnet file. */
const STATE = "charon";
/** How often, and how long, the end of a charon that does not answer is waited for. */
const ENDING_LOOKS = 10;
const ENDING_LOOK_MS = 30;
/** Pause between two tries to reach a charon that was just started, and for how long they go on, ms. */
const LOOK_MS = 50;
const UP_MS = 10_000;
/** Lines of charon that are kept, to tell why it ended. */
const KEPT_LINES = 5;
/** What charon prints that an operator wants to read; the rest is one line per packet. */
const TELLING =
  /established with|deleting IKE_SA|AUTH_FAILED|NO_PROPOSAL|TS_UNACCEPT|\bfail|error|unable|denied|invalid|no matching|not found|already running|unsupported/i;
const NOISE = /retransmit|received packet|sending packet|loaded plugins|plugin '.*': failed to load/i;

/** Told by a service about what happens to it. */
export interface CharonEvents {
  /** Before a charon starts, and after one ended by itself: what the kernel has now, no charon answers for. */
  readonly orphaned: () => void;
  /** There is something to do: it came up, or went. */
  readonly changed: () => void;
}

/** A connection to charon, and what it is like. */
export interface Connection {
  readonly client: ViciClient;
  /** Whether charon moves the packets itself (its plugin kernel-libipsec), in place of the kernel. */
  readonly inUserSpace: boolean;
}

/** charon, ours or one that the operator runs, and the connection to it. */
export class CharonService {
  readonly #file: string;
  readonly #host: Host;
  readonly #events: CharonEvents;
  #child: Child | undefined;
  #connection: Connection | undefined;
  #opening: Promise<Connection> | undefined;
  #lines: string[] = [];
  #ended: string | undefined;
  /** Whether our charon, as it runs now, could be asked once. */
  #reached = false;
  #stopped = false;

  constructor(file: string, host: Host, events: CharonEvents) {
    this.#file = file;
    this.#host = host;
    this.#events = events;
  }

  /** Whether the charon in use was started by somebody else. */
  get isForeign(): boolean {
    return this.#child === undefined;
  }

  /** Of our charon while it runs. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** How charon ended last, with what it said; undefined while all is well. */
  get ended(): string | undefined {
    return this.#ended;
  }

  /** Starts charon, unless one runs already that is not of a former run of ours: that one is used. */
  async start(): Promise<void> {
    const killed = clearRemains(this.#host.statePath(STATE));
    if (killed !== undefined) this.#host.log.warn("killed the charon of the last run", { pid: killed });
    else if (await this.#answers()) {
      forgetCharon(this.#host.statePath(STATE));
      return this.#host.log.info(`charon runs already: using it through ${SOCKET}`);
    }
    this.#startOwn();
  }

  /** The connection to charon. Throws an Error that says why there is none. */
  async connect(): Promise<Connection> {
    if (this.#connection?.client.isOpen) return this.#connection;
    this.#opening ??= this.#open()
      .catch((error: unknown) => this.#explain(error))
      .finally(() => {
        this.#opening = undefined;
      });
    return this.#opening;
  }

  /** Waits up to `ms` for charon to listen; undefined when it does not, or when the daemon stops. */
  async awaitUp(ms: number): Promise<Connection | undefined> {
    for (const end = performance.now() + ms; performance.now() < end; ) {
      if (this.#stopped || this.#host.signal.aborted) return undefined;
      try {
        return await this.connect();
      } catch {
        await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
      }
    }
    return undefined;
  }

  /**
   * Ends our charon the hard way: a polite one would take the tunnels down first, while the kernel carries the packets
   * until the next charon has built new ones. One of somebody else stays.
   */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#connection?.client.close();
    const child = this.#child;
    await child?.stop("SIGKILL");
    if (child) clearRemains(this.#host.statePath(STATE));
  }

  async #open(): Promise<Connection> {
    const client = await ViciClient.open(SOCKET, () => {
      this.#connection = undefined;
      // Of one of ours it is told with the reason when it has ended.
      if (!this.#stopped && this.#child === undefined) this.#lost();
    });
    const plugins = listOf(await client.request("stats"), "plugins");
    this.#ended = undefined;
    this.#reached = this.#child !== undefined;
    this.#connection = { client, inUserSpace: plugins.includes("kernel-libipsec") };
    return this.#connection;
  }

  /** How charon ended tells more than that its socket is dead, and is known a moment later. */
  async #explain(error: unknown): Promise<never> {
    for (let look = 0; look < ENDING_LOOKS && this.#reached && this.#ended === undefined; look++) {
      await new Promise((resolve) => setTimeout(resolve, ENDING_LOOK_MS));
    }
    throw this.#ended === undefined ? error : new Error(this.#ended);
  }

  /** The charon that somebody else ran is gone: from now on there is one of ours. */
  #lost(): void {
    this.#host.log.warn("the charon that was in use has ended: starting one");
    this.#startOwn();
  }

  #startOwn(): void {
    // It is there before the new charon listens, and would take connections from us for nobody.
    rmSync(SOCKET, { force: true });
    this.#events.orphaned();
    this.#child = this.#host.keepRunning({
      file: this.#file,
      line: (text) => this.#hear(text),
      started: (pid) => {
        this.#lines = [];
        rememberCharon(this.#host.statePath(STATE), pid);
        // It listens a moment after it was started.
        void this.awaitUp(UP_MS).then(() => this.#events.changed());
      },
      ended: (how) => {
        this.#reached = false;
        this.#ended = [how, ...this.#lines].join("; ");
        rmSync(SOCKET, { force: true });
        clearRemains(this.#host.statePath(STATE));
        this.#events.orphaned();
        this.#events.changed();
      },
    });
  }

  #hear(text: string): void {
    const line = text.replace(/^\d+\[(\w+)\] /, "$1: ").trim();
    if (line === "" || NOISE.test(line)) return;
    this.#lines = [...this.#lines, line].slice(-KEPT_LINES);
    if (TELLING.test(line)) this.#host.log.info(`charon: ${line}`);
  }

  async #answers(): Promise<boolean> {
    try {
      (await ViciClient.open(SOCKET)).close();
      return true;
    } catch {
      return false;
    }
  }
}
