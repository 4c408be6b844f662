import type { ActiveBackend, Host, OwnLease, PeerDelta } from "../../plugins/sdk/backend.ts";
import type { ExternalInterface, HostFacts } from "../../plugins/sdk/facts.ts";
import type { LeaseData, Peer, Subnets } from "../lease/lease.ts";
import type { Prefix } from "../net/prefix.ts";
import type { Kernel } from "../netlink/kernel.ts";
import type { RouteObject } from "../netlink/objects.ts";
import { describeError } from "../observe/fault.ts";
import type { Finding } from "../observe/finding.ts";
import type { Health } from "../observe/health.ts";
import type { Log } from "../observe/log.ts";
import { OwnFindings } from "../observe/own-findings.ts";
import { Backoff, sleep } from "../retry/backoff.ts";
import { Turns } from "../retry/turns.ts";
import { listenForBackend } from "./active-notices.ts";
import { mergeDeltas, NO_CHANGE } from "./delta.ts";
import type { Driver, DriverEvents } from "./driver.ts";
import { gatherFacts } from "./facts.ts";
import { KeptRoutes } from "./kept-routes.ts";
import { PeerProblems } from "./peer-problems.ts";
import type { DataPathCounts, PeerState } from "./peer-state.ts";
import { Phase, type PhaseTimeouts } from "./phase.ts";
import { removeStaleDevices, removeStaleRoutes } from "./stale.ts";
import { removeStalePolicies } from "./stale-policies.ts";

export interface ActiveInput {
  readonly backend: ActiveBackend;
  /** What the backend gets; `wake` is added here. */
  readonly host: Omit<Host, "wake">;
  readonly kernel: Kernel;
  readonly external: ExternalInterface;
  /** Cluster networks now and of the last run. */
  readonly networks: readonly Prefix[];
  /** What the operator wants beside the backend's own objects (a blackhole for the own subnet). */
  readonly extras?: (subnets: Subnets) => readonly RouteObject[];
  readonly health: Health;
  readonly log: Log;
  readonly timeouts: PhaseTimeouts;
}

/** How often an active backend gets the whole truth again without any change, ms. */
const RESYNC_MS = 60_000;
/** Shortest time between two syncs that the backend itself asks for, ms. */
const ASKED_GAP_MS = 500;

/** Runs a backend that moves packets or calls an API itself; retries and resyncs it. */
export class ActiveDriver implements Driver {
  readonly watchesPeers = true;
  readonly #input: ActiveInput;
  readonly #findings: OwnFindings;
  readonly #problems: PeerProblems;
  readonly #kept: KeptRoutes;
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
  /** Aborted when what the loop sleeps for is not right any more. */
  #wake = new AbortController();
  /** Whether the backend asks for a sync. */
  #asked = false;
  /** MTU for pods, as the backend said last. */
  #mtu: number | undefined;
  /** The one the agent knows. */
  #toldMtu: number | undefined;
  /** Tells the agent a new one, while the loop runs. */
  #tell: ((mtu: number) => void) | undefined;
  /** The backend, or a change of what is its, asks for a sync. */
  readonly #ask = () => {
    this.#asked = true;
    this.#wake.abort();
  };
  #shown: ReadonlySet<string> = new Set();

  constructor(input: ActiveInput) {
    this.#input = input;
    this.#findings = new OwnFindings(input.health);
    this.#problems = new PeerProblems(this.#findings);
    this.#kept = new KeptRoutes(input.kernel);
    const { prepare, sync, stop } = input.timeouts;
    this.#preparing = new Phase("prepare", prepare);
    this.#syncing = new Phase("sync", sync);
    this.#asking = new Phase("health", sync);
    this.#stopping = new Phase("stop", stop);
  }

  async prepare(): Promise<LeaseData> {
    const { backend, host } = this.#input;
    const facts = await this.#facts();
    return this.#preparing.call(() => backend.prepare({ ...host, wake: this.#ask }, facts));
  }

  async attach(lease: OwnLease): Promise<number> {
    const facts = await this.#facts();
    const { mtu } = await this.#preparing.call(() => this.#input.backend.attach(lease, facts));
    this.#mtu = mtu;
    this.#toldMtu = mtu;
    await this.#removeStale(lease.subnets);
    await this.#kept.want(this.#input.extras?.(lease.subnets) ?? []);
    return mtu;
  }

  update(peers: ReadonlyMap<string, Peer>, delta: PeerDelta): Promise<void> {
    return this.#turns.take(async () => {
      this.#peers = peers;
      this.#pending = mergeDeltas(this.#pending, delta);
      for (const key of delta.removed) this.#problems.forget(key);
      const failed = this.#failing;
      await this.#sync();
      // The loop may be asleep for the long time between two syncs that succeed.
      if (this.#failing && !failed) this.#wake.abort();
      await this.#showHealth();
    });
  }

  async run(events: DriverEvents, signal: AbortSignal): Promise<void> {
    const { backend, kernel, log, external, networks } = this.#input;
    const concern = { devices: new Set(backend.devices), external: external.name, networks };
    const listening = listenForBackend({ kernel, log, signal, concern, disturbed: this.#ask });
    this.#tell = (mtu) => {
      if (!signal.aborted) events.mtu(mtu);
    };
    this.#tellMtu();
    await Promise.all([listening, this.#work(events, signal)]);
  }

  async #work({ pulse = () => {} }: DriverEvents, signal: AbortSignal): Promise<void> {
    let asked = Number.NEGATIVE_INFINITY;
    while (!signal.aborted) {
      pulse(RESYNC_MS);
      const pause = this.#failing ? this.#retry.next() : RESYNC_MS;
      await sleep(pause, AbortSignal.any([signal, this.#wake.signal]));
      if (signal.aborted) return;
      if (this.#wake.signal.aborted) {
        this.#wake = new AbortController();
        if (!this.#asked) continue;
        this.#asked = false;
        await sleep(ASKED_GAP_MS - (performance.now() - asked), signal);
        asked = performance.now();
      }
      // A sync may have to wait for an earlier one that takes too long, and so may the question for the health.
      pulse(this.#input.timeouts.sync * 4);
      await this.#turns.take(async () => {
        await this.#sync();
        await this.#showHealth();
      });
    }
  }

  get stopPatience(): number {
    return this.#input.backend.stopPatience ?? 0;
  }

  stop(): Promise<void> {
    this.#findings.end();
    return this.#turns.take(() => this.#stopping.call(() => this.#input.backend.stop()));
  }

  async abandon(): Promise<void> {
    this.#findings.end();
    await this.#stopping.call(() => this.#input.backend.cleanup({ dryRun: false }));
  }

  counts(): DataPathCounts {
    const wanted = this.#peers.size;
    const refused = [...this.#refused.keys()].filter((key) => this.#peers.has(key)).length;
    const unusable = this.#problems.keys.length;
    return {
      wanted,
      programmed: wanted - refused - unusable,
      refused,
      unusable,
      objects: 0,
      failing: this.#failing ? Math.max(1, this.#refused.size) : 0,
    };
  }

  get details(): Readonly<Record<string, string>> {
    try {
      return this.#input.backend.describe?.() ?? {};
    } catch (error) {
      return { error: describeError(error) };
    }
  }

  describe(key: string): PeerState {
    const reason = this.#refused.get(key);
    return { objects: [], problems: [...this.#problems.of(key), ...(reason === undefined ? [] : [reason])] };
  }

  /** What another backend left would win over this one's: its devices hold longer prefixes, and traffic in clear. */
  async #removeStale({ ipv4: subnet }: Subnets): Promise<void> {
    const { backend, kernel, external, networks, extras, log } = this.#input;
    const own = backend.devices && new Set(backend.devices);
    await removeStaleDevices(kernel, own, networks, log);
    const keeps = (dev: string | undefined) => {
      // A route on no device refuses packets: the backend's guard against traffic in clear, or what the operator wants.
      if (dev === undefined) return backend.keepsBlackholes === true || extras !== undefined;
      return own ? own.has(dev) : dev !== external.name;
    };
    // None of these makes nexthop objects on the external interface, but what routes on it is kept may be by them.
    const keepsNexthops = (dev: string | undefined) => dev !== external.name && keeps(dev);
    await removeStaleRoutes(kernel, { networks, keeps, keepsNexthops }, log);
    if (!backend.keepsPolicies) await removeStalePolicies(kernel, { networks, subnet }, log);
  }

  async #sync(): Promise<void> {
    const { backend } = this.#input;
    let reasons: readonly string[];
    let text = "";
    try {
      const facts = await this.#facts();
      const {
        failed,
        unusable = [],
        mtu,
      } = await this.#syncing.call(() => backend.sync([...this.#peers.values()], this.#pending, facts));
      if (mtu !== undefined) this.#mtu = mtu;
      this.#tellMtu();
      const problems = new Map(unusable.map(({ key, reason }) => [key, reason]));
      for (const key of this.#peers.keys()) this.#problems.note(key, [problems.get(key) ?? []].flat());
      this.#refused = new Map(failed.map(({ key, reason }) => [key, reason]));
      reasons = [...failed.map(({ key, reason }) => `${key}: ${reason}`), ...(await this.#kept.tryRepair())];
      text = `${reasons.length} of ${this.#peers.size}; first: ${reasons[0]}`;
    } catch (error) {
      text = describeError(error);
      reasons = [text];
      this.#refused = new Map([...this.#peers.keys()].map((key) => [key, describeError(error)]));
    }
    this.#failing = reasons.length > 0;
    if (!this.#failing) {
      this.#pending = NO_CHANGE;
      this.#retry.reset();
      return this.#findings.clear("DATAPLANE_REFUSED");
    }
    this.#findings.raise({
      code: "DATAPLANE_REFUSED",
      severity: "error",
      title: "the backend cannot program all peers",
      text,
      fix: "It is tried again by itself with growing pauses.",
    });
  }

  /** Raises what the backend finds now and clears what it does not find any more. */
  async #showHealth(): Promise<void> {
    const findings = await this.#askHealth();
    const codes = new Set(findings.map((finding) => finding.code));
    for (const code of this.#shown) if (!codes.has(code)) this.#findings.clear(code);
    for (const finding of findings) this.#findings.raise(finding);
    this.#shown = codes;
  }

  #tellMtu(): void {
    if (this.#tell === undefined || this.#mtu === undefined || this.#mtu === this.#toldMtu) return;
    this.#toldMtu = this.#mtu;
    this.#tell(this.#mtu);
  }

  async #askHealth(): Promise<readonly Finding[]> {
    try {
      const findings = (await this.#asking.call(async () => this.#input.backend.health?.())) ?? [];
      if (!Array.isArray(findings) || !findings.every(isFinding))
        throw new Error("it answers no list of findings");
      return findings;
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

/** Whether a plugin's word is one that can be shown. */
function isFinding(value: unknown): value is Finding {
  if (typeof value !== "object" || value === null) return false;
  const parts = ["code", "severity", "title", "text", "fix"] as const;
  return parts.every((part) => part in value && typeof (value as Finding)[part] === "string");
}
