import type { ActiveBackend, PeerDelta, SyncReport } from "flannel/sdk";
import { ActiveDriver } from "../../../core/dataplane/active.ts";
import type { Peer } from "../../../core/lease/lease.ts";
import type { Notice } from "../../../core/netlink/kernel.ts";
import type { Finding } from "../../../core/observe/finding.ts";
import { Health } from "../../../core/observe/health.ts";
import { RecordingLog } from "../observe/recording-log.ts";
import { emptyKernel } from "./empty-kernel.ts";
import { NO_PROCESSES } from "./no-processes.ts";

const external = { name: "eth0", index: 2, mtu: 1500, publicIP: "192.0.2.1" };
/** A peer by its key alone. */
export const peer = (key: string): Peer => ({ key, backendType: "active" });

interface Call {
  readonly peers: readonly string[];
  readonly delta: { added: string[]; changed: string[]; removed: readonly string[] };
}

/** Notices of a kernel, for one reader. */
class NoticeQueue {
  #batches: (readonly Notice[])[] = [];
  #come = Promise.withResolvers<void>();

  push(notice: Notice): void {
    this.#batches.push([notice]);
    this.#come.resolve();
  }

  async *read(signal: AbortSignal): AsyncGenerator<readonly Notice[]> {
    signal.addEventListener("abort", () => this.#come.resolve());
    while (!signal.aborted) {
      await this.#come.promise;
      this.#come = Promise.withResolvers();
      if (signal.aborted) return;
      yield* this.#batches.splice(0);
    }
  }
}

/** A driver over a backend that records its calls and answers what the test wants. */
export function setUp(
  sync: () => Promise<SyncReport> | SyncReport = () => ({ failed: [] }),
  findings?: () => Finding[],
) {
  let wake = () => {};
  const calls: string[] = [];
  const syncs: Call[] = [];
  const keys = (peers: readonly Peer[]) => peers.map((each) => each.key);
  const backend: ActiveBackend = {
    mode: "active",
    prepare: async (host, facts) => {
      wake = host.wake;
      calls.push(`prepare on ${facts.external.name}`);
      return { backendType: "active" };
    },
    attach: async ({ subnets }) => {
      calls.push(`attach ${subnets.ipv4}`);
      return { mtu: 1400 };
    },
    sync: async (peers, { added, changed, removed }) => {
      syncs.push({ peers: keys(peers), delta: { added: keys(added), changed: keys(changed), removed } });
      return sync();
    },
    ...(findings === undefined ? {} : { health: async () => findings() }),
    stop: async () => {
      calls.push("stop");
    },
    cleanup: async ({ dryRun }) => {
      calls.push(`cleanup ${dryRun}`);
      return [];
    },
  };
  const machine = { ...external };
  const notices = new NoticeQueue();
  const kernel = Object.assign(emptyKernel(machine), {
    notices: (signal: AbortSignal) => notices.read(signal),
  });
  const mtus: number[] = [];
  const events = { published() {}, mtu: (mtu: number) => mtus.push(mtu) };
  const log = new RecordingLog();
  const health = new Health(log);
  const controller = new AbortController();
  const driver = new ActiveDriver({
    backend,
    kernel,
    external,
    networks: [],
    health,
    log,
    timeouts: { prepare: 10_000, sync: 500, stop: 10_000 },
    host: {
      kernel,
      log,
      ...NO_PROCESSES,
      statePath: (name) => `/nonexistent/${name}`,
      signal: controller.signal,
    },
  });
  const peers = new Map<string, Peer>();
  const update = (delta: Partial<PeerDelta>) => {
    for (const each of [...(delta.added ?? []), ...(delta.changed ?? [])]) peers.set(each.key, each);
    for (const key of delta.removed ?? []) peers.delete(key);
    return driver.update(peers, { added: [], changed: [], removed: [], ...delta });
  };
  let running: Promise<void> | undefined;
  return {
    driver,
    calls,
    syncs,
    log,
    health,
    machine,
    notices,
    mtus,
    update,
    wake: () => wake(),
    run: () => {
      running = driver.run(events, controller.signal);
    },
    async [Symbol.asyncDispose]() {
      controller.abort();
      await running;
    },
  };
}
