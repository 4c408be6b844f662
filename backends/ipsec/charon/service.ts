import type { Child, Host } from "flannel/sdk";
import { ViciClient } from "../vici/client.ts";
import { listOf } from "../vici/message.ts";
import { readConfiguration, routingRuleOf } from "./configuration.ts";
import { clearRemains, SOCKET } from "./remains.ts";
import { hasSockets } from "./sockets.ts";

/** How often, and how long, the end of a charon that does not answer is waited for. */
const ENDING_LOOKS = 20;
const ENDING_LOOK_MS = 30;
/** How long a charon of the last run has to answer, ms. */
const ANSWER_MS = 5_000;
/** Pause between two tries to reach a charon that was just started, and for how long they go on, ms. */
const LOOK_MS = 50;
const UP_MS = 10_000;
/** Lines of charon that are kept, to tell why it ended. */
const KEPT_LINES = 5;
/** What charon prints that an operator wants to read; the rest is one line per packet. */
const TELLING =
  /established with|deleting IKE_SA|AUTH_FAILED|NO_PROPOSAL|TS_UNACCEPT|\bfail|error|unable|denied|invalid|no matching|not found|already running|unsupported|requires CAP_|no socket/i;
const NOISE = /retransmit|received packet|sending packet|loaded plugins|plugin '.*': failed to load/i;

/** The file that tells of our charon. */
export function noteOf(host: Pick<Host, "statePath">): string {
  return host.statePath("charon");
}

/** Why a charon of the last run is not gone on with. */
const REASON = {
  different: "it was started with another configuration",
  silent: "it does not answer",
} as const;

/** Told by a service about what happens to it. */
export interface CharonEvents {
  /**
   * States in the kernel may be those of a charon that is no more: before one starts, after one ended by itself, and
   * when that of the last run is taken over.
   */
  readonly orphaned: () => void;
  /** There is something to do: it came up, or went. */
  readonly changed: () => void;
}

/** A connection to charon, and what it is like. */
export interface Connection {
  readonly client: ViciClient;
  /** Whether charon moves the packets itself (its plugin kernel-libipsec), in place of the kernel. */
  readonly inUserSpace: boolean;
  /** Whether all that it has of ours was loaded with the settings of now, by this run or by one before. */
  readonly isOurs: boolean;
}

/** charon, ours or one that the operator runs, and the connection to it. Ours outlives the daemon. */
export class CharonService {
  readonly #file: string;
  readonly #host: Host;
  readonly #events: CharonEvents;
  #child: Child | undefined;
  #settings = "";
  #connection: Connection | undefined;
  #opening: Promise<Connection> | undefined;
  #lines: string[] = [];
  #ended: string | undefined;
  /** Why we ended charon as it runs now. */
  #complaint: string | undefined;
  /** Whether our charon, as it runs now, could be asked once. */
  #reached = false;
  #isAdopted = false;
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

  /**
   * Goes on with our charon of an earlier run, if it has the same configuration and `settings` and answers; else that
   * one is killed, and a new one started. Where none of ours runs, one that somebody else runs is used.
   */
  async start(settings: string): Promise<void> {
    this.#settings = settings;
    if (this.#host.findLasting(noteOf(this.#host)).length === 0 && (await this.#answers()))
      return this.#host.log.info(`charon runs already: using it through ${SOCKET}`);
    await this.#startOwn();
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
      if (this.#isOver) return undefined;
      try {
        return await this.connect();
      } catch {
        await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
      }
    }
    return undefined;
  }

  /** Looks after charon no longer; it runs on, and the tunnels with it. */
  async leave(): Promise<void> {
    this.#stopped = true;
    this.#connection?.client.close();
    await this.#child?.leave();
  }

  /** Ends a charon that this run has started; one of an earlier run, or of somebody else, runs on. */
  giveUp(): Promise<void> {
    return this.#isAdopted ? this.leave() : this.end();
  }

  /**
   * Ends our charon the hard way: a polite one would take the tunnels down first, while the kernel carries the packets
   * until the next charon has built new ones. One of somebody else stays.
   */
  async end(): Promise<void> {
    this.#stopped = true;
    this.#connection?.client.close();
    if (!this.#child) return;
    await this.#child.stop("SIGKILL");
    clearRemains();
  }

  get #isOver(): boolean {
    return this.#stopped || this.#host.signal.aborted;
  }

  async #open(): Promise<Connection> {
    const client = await ViciClient.open(SOCKET, () => {
      if (this.#connection?.client === client) this.#connection = undefined;
      // Of one of ours it is told with the reason when it has ended.
      if (!this.#stopped && this.#child === undefined) this.#lost();
    });
    const plugins = listOf(await client.request("stats"), "plugins");
    const { pid } = this;
    if (pid !== undefined && !hasSockets(pid)) {
      client.close();
      // It has no tunnels to take down, and says why when it ends; the next one may have more luck.
      process.kill(pid, "SIGTERM");
      this.#complaint = "it has no sockets for IKE: its ports are taken, or forbidden";
      throw new Error(this.#complaint);
    }
    const isOurs = this.#child !== undefined;
    this.#ended = undefined;
    this.#reached = isOurs;
    this.#connection = { client, inUserSpace: plugins.includes("kernel-libipsec"), isOurs };
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
    void this.#startOwn();
  }

  /** Resolves when it is known whether a charon of an earlier run is gone on with. */
  #startOwn(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const settings = this.#settings;
    this.#child = this.#host.keepRunning({
      file: this.#file,
      lasting: {
        note: noteOf(this.#host),
        // Read anew at each start, as charon does.
        get startedWith() {
          return JSON.stringify([readConfiguration(), settings]);
        },
        get remarks() {
          return { ...routingRuleOf(readConfiguration()) };
        },
        answers: () => this.#respondsInTime(),
        adopted: (pid) => {
          this.#isAdopted = true;
          this.#host.log.info("going on with the charon of the last run", { pid });
          this.#events.orphaned();
          resolve();
        },
        replaced: (pid, why) =>
          this.#host.log.warn(`killed the charon of the last run: ${REASON[why]}`, { pid }),
      },
      line: (text) => this.#hear(text),
      starting: () => {
        this.#isAdopted = false;
        clearRemains();
        this.#events.orphaned();
        resolve();
      },
      started: () => {
        this.#lines = [];
        this.#complaint = undefined;
        // It listens a moment after it was started.
        void this.awaitUp(UP_MS).then(() => this.#events.changed());
      },
      ended: (how) => {
        this.#reached = false;
        this.#ended = [this.#complaint ?? how, ...this.#lines].join("; ");
        this.#events.orphaned();
        this.#events.changed();
        resolve();
      },
    });
    return promise;
  }

  /** Whether a charon of an earlier run can be asked: it may hang, or not listen yet. */
  async #respondsInTime(): Promise<boolean> {
    const late = Promise.withResolvers<undefined>();
    const timer = setTimeout(late.resolve, ANSWER_MS, undefined);
    const connection = await Promise.race([this.awaitUp(ANSWER_MS), late.promise]);
    clearTimeout(timer);
    // A daemon that stops leaves it as it is.
    return connection !== undefined || this.#isOver;
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
