import { openLibc } from "../system/libc.ts";
import { COUNTERS_LENGTH, type Counter, readCounters } from "./counters.ts";
import { openWake, wakeLoop } from "./loop.ts";
import type { FromWorker, PeersMessage, StartMessage, ToWorker } from "./messages.ts";

/** Longest time the thread may take over a message, ms: it is in the middle of a turn at most. */
const PATIENCE_MS = 2_000;

/** What a data path is made of, without what the thread adds. */
export type ThreadInput = Omit<StartMessage, "kind" | "wake" | "counters" | "posted">;

/** Where the worker lies: an entry point of its own in the executable, laid out like the repository. */
function workerModule(): string {
  return Bun.isStandaloneExecutable
    ? "/$bunfs/root/backends/udp/worker.js"
    : new URL("../worker.ts", import.meta.url).pathname;
}

/** The thread that moves packets, as the main thread sees it. */
export class ForwardingThread {
  readonly #worker = new Worker(workerModule());
  readonly #wake = openWake();
  readonly #counters = new SharedArrayBuffer(COUNTERS_LENGTH);
  readonly #posted = new SharedArrayBuffer(4);
  readonly #waiting: (() => void)[] = [];
  #failure: string | undefined;

  private constructor(failed: () => void) {
    const fail = (text: string) => {
      if (this.#failure !== undefined) return;
      this.#failure = text;
      for (const done of this.#waiting.splice(0)) done();
      failed();
    };
    this.#worker.onmessage = ({ data }: MessageEvent<FromWorker>) => {
      if (data.kind === "failed") fail(data.text);
      else this.#waiting.shift()?.();
    };
    this.#worker.onerror = (event) => {
      event.preventDefault();
      fail(event.message.trim().split("\n")[0] ?? "unknown error");
    };
    this.#worker.addEventListener("close", () => fail("the thread has ended"));
  }

  /**
   * Starts forwarding, with no peers. `failed` is called once when it ends by itself. Throws when it does not come up.
   */
  static async start(input: ThreadInput, failed: () => void): Promise<ForwardingThread> {
    const thread = new ForwardingThread(failed);
    const shared = { wake: thread.#wake, counters: thread.#counters, posted: thread.#posted };
    try {
      await thread.#tell({ kind: "start", ...input, ...shared });
      return thread;
    } catch (error) {
      await thread.stop();
      throw error;
    }
  }

  /** Why forwarding ended, undefined while it goes on. */
  get failure(): string | undefined {
    return this.#failure;
  }

  /** The counters now. */
  get counters(): Readonly<Record<Counter, number>> {
    return readCounters(new Float64Array(this.#counters));
  }

  /** Replaces all peers; resolves when packets go their way. Throws when forwarding has ended. */
  async setPeers(peers: Omit<PeersMessage, "kind">): Promise<void> {
    await this.#tell({ kind: "peers", ...peers });
  }

  /** Ends the thread; afterwards its descriptors may be closed. Safe to call at any time. */
  async stop(): Promise<void> {
    if (this.#failure === undefined) await this.#tell({ kind: "stop" }).catch(() => {});
    this.#failure ??= "stopped";
    this.#worker.terminate();
    openLibc().close(this.#wake);
  }

  async #tell(message: ToWorker): Promise<void> {
    if (this.#failure !== undefined) throw new Error(this.#failure);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push(resolve);
    Atomics.add(new Int32Array(this.#posted), 0, 1);
    this.#worker.postMessage(message);
    wakeLoop(this.#wake);
    const timer = setTimeout(resolve, PATIENCE_MS);
    await promise;
    clearTimeout(timer);
    if (this.#failure !== undefined) throw new Error(this.#failure);
    const at = this.#waiting.indexOf(resolve);
    if (at >= 0) throw new Error(`the forwarding thread did not answer within ${PATIENCE_MS} ms`);
  }
}
