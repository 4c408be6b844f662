import { join } from "node:path";
import type {
  ActiveBackend,
  CleanupOptions,
  ConfigureInput,
  Finding,
  HostFacts,
  LeaseData,
  OwnLease,
  Peer,
  PeerDelta,
  SyncReport,
} from "flannel/sdk";
import type { Namespace } from "../lab/namespace.ts";
import { configureInput, type Setting } from "./plugins.ts";

/** What the process runs. */
export interface RemoteInput extends Omit<ConfigureInput<unknown>, "nodeId"> {
  /** Path of the plugin's module. */
  readonly main: string;
}

/** What a {@link RemoteBackend} asks its process. */
export interface RemoteCall {
  readonly method: "prepare" | "attach" | "sync" | "health" | "describe" | "stop" | "cleanup";
  readonly args: readonly unknown[];
}

/** What the process answers. */
export type RemoteAnswer = { readonly value?: unknown } | { readonly error: string; readonly code?: string };

/**
 * A backend in a process of its own inside a namespace: for one that opens devices and sockets, which belong to the
 * namespace of their thread. What goes in and out is JSON: plain data, as the contract has it.
 */
export class RemoteBackend implements AsyncDisposable {
  readonly #child: Bun.Subprocess<"pipe", "pipe", "inherit">;
  readonly #lines: AsyncIterator<string>;

  private constructor(ns: Namespace, remote: RemoteInput) {
    const input = JSON.stringify(remote);
    const main = join(import.meta.dir, "remote-main.ts");
    this.#child = Bun.spawn(["ip", "netns", "exec", ns.name, process.execPath, main, input], {
      stdin: "pipe",
      stdout: "pipe",
      stderr: "inherit",
    });
    this.#lines = readLines(this.#child.stdout);
  }

  /** Starts the process; the plugin is loaded there. */
  static async start(ns: Namespace, setting: Setting): Promise<RemoteBackend> {
    const { nodeId: _, ...input } = await configureInput(setting);
    return new RemoteBackend(ns, { main: join(setting.subject.folder, "index.ts"), ...input });
  }

  prepare(facts: HostFacts): Promise<LeaseData> {
    return this.#ask<LeaseData>("prepare", facts);
  }

  attach(lease: OwnLease, facts: HostFacts): Promise<{ readonly mtu: number }> {
    return this.#ask("attach", lease, facts);
  }

  sync(peers: readonly Peer[], delta: PeerDelta, facts: HostFacts): Promise<SyncReport> {
    return this.#ask("sync", peers, delta, facts);
  }

  health(): Promise<readonly Finding[]> {
    return this.#ask("health");
  }

  describe(): Promise<ReturnType<NonNullable<ActiveBackend["describe"]>>> {
    return this.#ask("describe");
  }

  stop(): Promise<void> {
    return this.#ask("stop");
  }

  cleanup(options: Pick<CleanupOptions, "dryRun">): Promise<readonly string[]> {
    return this.#ask("cleanup", options);
  }

  /** Ends the process without a word, as a crash does. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#child.exited;
  }

  async #ask<T>(method: RemoteCall["method"], ...args: readonly unknown[]): Promise<T> {
    this.#child.stdin.write(`${JSON.stringify({ method, args } satisfies RemoteCall)}\n`);
    this.#child.stdin.flush();
    const { value: line, done } = await this.#lines.next();
    if (done) throw new Error(`${method}: the process has ended`);
    const answer = JSON.parse(line) as RemoteAnswer;
    if ("error" in answer) throw Object.assign(new Error(answer.error), { code: answer.code });
    return answer.value as T;
  }
}

async function* readLines(stream: ReadableStream<Uint8Array>): AsyncGenerator<string, undefined> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of stream) {
    const lines = (text + decoder.decode(chunk, { stream: true })).split("\n");
    text = lines.pop() ?? "";
    yield* lines;
  }
  return undefined;
}
