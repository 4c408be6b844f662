import type { ActiveBackend, Host, OwnLease, PeerDelta } from "../../plugins/sdk/backend.ts";
import type { ExternalInterface, HostFacts } from "../../plugins/sdk/facts.ts";
import type { LeaseData, Peer } from "../lease/lease.ts";
import type { Kernel } from "../netlink/kernel.ts";
import { describeError } from "../observe/fault.ts";
import type { Finding } from "../observe/finding.ts";
import type { Health } from "../observe/health.ts";
import { Backoff, sleep } from "../retry/backoff.ts";
import { Turns } from "../retry/turns.ts";
import { mergeDeltas, NO_CHANGE } from "./delta.ts";
import type { Driver, DriverEvents } from "./driver.ts";
import { gatherFacts } from "./facts.ts";
import type { DataPathCounts, PeerState } from "./peer-state.ts";
import { Phase, type PhaseTimeouts } from "./phase.ts";

export interface ActiveInput {
  readonly backend: ActiveBackend;
  readonly host: Host;
  readonly kernel: Kernel;
  readonly external: ExternalInterface;
  readonly health: Health;
  readonly timeouts: PhaseTimeouts;
}

/** How often an active backend gets the whole truth again without any change, ms. */
const RESYNC_MS = 60_000;

/** Runs a backend that moves packets or calls an API itself; retries and resyncs it. */
export class ActiveDriver implements Driver {
  readonly watchesPeers = true;
  readonly #input: ActiveInput;
  readonly #turns = new Turns();
  readonly #retry = new Backoff({ first: 1_000, max: 60_000 });
  readonly #preparing: Phase;
  readonly #syncing: Phase;
  readonly #asking: Phase;
  readonly #stopping: Phase;
  #peers: ReadonlyMap<string, Peer> = new Map();
  /** What changed since the last sync that succeeded. */
  #pending: PeerDelta = NO_CHANGE;
  /** Why peers are not programmed, by key; all of them when the whole sync failed. */
  #refused: ReadonlyMap<string, string> = new Map();
  #failing = false;
  #wake = new AbortController();
  #shown: ReadonlySet<string> = new Set();

  constructor(input: ActiveInput) {
    this.#input = input;
    const { prepare, sync, stop } = input.timeouts;
    this.#preparing = new Phase("prepare", prepare);
    this.#syncing = new Phase("sync", sync);
    this.#asking = new Phase("health", sync);
    this.#stopping = new Phase("stop", stop);
  }

  async prepare(): Promise<LeaseData> {
    const { backend, host } = this.#input;
    const facts = await this.#facts();
    return this.#preparing.call(() => backend.prepare(host, facts));
  }

  async attach(lease: OwnLease): Promise<number> {
    const facts = await this.#facts();
    return (await this.#preparing.call(() => this.#input.backend.attach(lease, facts))).mtu;
  }

  update(peers: ReadonlyMap<string, Peer>, delta: PeerDelta): Promise<void> {
    return this.#turns.take(async () => {
      this.#peers = peers;
      this.#pending = mergeDeltas(this.#pending, delta);
      await this.#sync();
      // The loop may be asleep for the long time between two syncs that succeed.
      if (this.#failing) this.#wake.abort();
    });
  }

  async run({ pulse = () => {} }: DriverEvents, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      pulse(RESYNC_MS);
      if (this.#failing) await sleep(this.#retry.next(), signal);
      else await sleep(RESYNC_MS, AbortSignal.any([signal, this.#wake.signal]));
      if (signal.aborted) return;
      const woken = this.#wake.signal.aborted;
      if (woken) this.#wake = new AbortController();
      if (woken && this.#failing) continue;
      // A sync may have to wait for an earlier one that takes too long, and so may the question for the health.
      pulse(this.#input.timeouts.sync * 4);
      await this.#turns.take(() => this.#sync());
      await this.#showHealth();
    }
  }

  stop(): Promise<void> {
    return this.#turns.take(() => this.#stopping.call(() => this.#input.backend.stop()));
  }

  async abandon(): Promise<void> {
    await this.#stopping.call(() => this.#input.backend.cleanup({ dryRun: false }));
  }

  counts(): DataPathCounts {
    const wanted = this.#peers.size;
    const refused = [...this.#refused.keys()].filter((key) => this.#peers.has(key)).length;
    return {
      wanted,
      programmed: wanted - refused,
      refused,
      unusable: 0,
      objects: 0,
      failing: this.#failing ? Math.max(1, this.#refused.size) : 0,
    };
  }

  describe(key: string): PeerState {
    const reason = this.#refused.get(key);
    return { objects: [], problems: reason === undefined ? [] : [reason] };
  }

  async #sync(): Promise<void> {
    const { backend, health } = this.#input;
    let reasons: readonly string[];
    try {
      const facts = await this.#facts();
      const { failed } = await this.#syncing.call(() =>
        backend.sync([...this.#peers.values()], this.#pending, facts),
      );
      this.#refused = new Map(failed.map(({ key, reason }) => [key, reason]));
      reasons = failed.map(({ key, reason }) => `${key}: ${reason}`);
    } catch (error) {
      reasons = [describeError(error)];
      this.#refused = new Map([...this.#peers.keys()].map((key) => [key, describeError(error)]));
    }
    this.#failing = reasons.length > 0;
    if (!this.#failing) {
      this.#pending = NO_CHANGE;
      this.#retry.reset();
      return health.clear("DATAPLANE_REFUSED");
    }
    health.raise({
      code: "DATAPLANE_REFUSED",
      severity: "error",
      title: "the backend cannot program all peers",
      text: `${reasons.length} of ${this.#peers.size}; first: ${reasons[0]}`,
      fix: "It is tried again by itself with growing pauses.",
    });
  }

  /** Raises what the backend finds now and clears what it does not find any more. */
  async #showHealth(): Promise<void> {
    const { health } = this.#input;
    const findings = await this.#askHealth();
    const codes = new Set(findings.map((finding) => finding.code));
    for (const code of this.#shown) if (!codes.has(code)) health.clear(code);
    for (const finding of findings) health.raise(finding);
    this.#shown = codes;
  }

  async #askHealth(): Promise<readonly Finding[]> {
    try {
      return (await this.#asking.call(async () => this.#input.backend.health?.())) ?? [];
    } catch (error) {
      return [
        {
          code: "BACKEND_HEALTH",
          severity: "warning",
          title: "the backend cannot tell its health",
          text: describeError(error),
          fix: "See the plugin's own log lines.",
        },
      ];
    }
  }

  #facts(): Promise<HostFacts> {
    const { kernel, external } = this.#input;
    return gatherFacts(kernel, { external, devices: [], usesRoutes: true });
  }
}
