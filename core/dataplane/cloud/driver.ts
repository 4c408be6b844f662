import type { OwnLease } from "../../../plugins/sdk/backend.ts";
import type { CloudBackend, CloudHost, CloudReading } from "../../../plugins/sdk/cloud.ts";
import type { ExternalInterface, HostFacts } from "../../../plugins/sdk/facts.ts";
import type { LeaseData, Peer, Subnets } from "../../lease/lease.ts";
import type { LeaseStore } from "../../lease/store.ts";
import type { Prefix } from "../../net/prefix.ts";
import type { Kernel } from "../../netlink/kernel.ts";
import type { RouteObject } from "../../netlink/objects.ts";
import { count } from "../../observe/counts.ts";
import type { Health } from "../../observe/health.ts";
import type { Log } from "../../observe/log.ts";
import { Backoff, sleep } from "../../retry/backoff.ts";
import { Turns } from "../../retry/turns.ts";
import type { Driver, DriverEvents } from "../driver.ts";
import { gatherFacts } from "../facts.ts";
import type { DataPathCounts, PeerState } from "../peer-state.ts";
import { removeStaleDevices, removeStaleRoutes } from "../stale.ts";
import { removeCharonRemains } from "../stale-charon.ts";
import { removeStalePolicies } from "../stale-policies.ts";
import type { DataplaneStats } from "../stats.ts";
import { type CloudFinding, findingOf, isCloudError } from "./finding.ts";
import type { LeaseRange } from "./plan.ts";
import { Retirement, textsOf } from "./retirement.ts";
import { CloudTables, type Look } from "./tables.ts";

export interface CloudInput {
  readonly backend: CloudBackend;
  readonly host: CloudHost;
  readonly kernel: Kernel;
  readonly external: ExternalInterface;
  /** Cluster networks now and of the last run. */
  readonly networks: readonly Prefix[];
  /** Cluster networks with the prefix length of their leases. */
  readonly ranges: readonly LeaseRange[];
  /** What the operator wants in the kernel beside (a blackhole for the own subnet). */
  readonly extras?: (subnets: Subnets) => readonly RouteObject[];
  /** Where the ipsec backend notes down its charon; absent, what that left is not looked for. */
  readonly charonNote?: string;
  readonly store: Pick<LeaseStore, "lead" | "takenSubnets">;
  readonly health: Health;
  readonly log: Log;
  readonly stats: DataplaneStats;
  /** Longest time of one call of the plugin, ms. */
  readonly timeout: number;
}

/** First pause after a failure; after "fewer calls, please" a longer one, ms. */
const RETRY_MS = { first: 1_000, throttled: 5_000 } as const;
/** Longest one look may take: every call of it at its time-out, ms. */
const LONGEST_LOOK_MS = 1_800_000;

/** Keeps a cloud's route tables as they have to be for this node; see CloudBackend of the contract. */
export class CloudDriver implements Driver {
  readonly watchesPeers = true;
  readonly #input: CloudInput;
  readonly #tables: CloudTables;
  readonly #retirement: Retirement | undefined;
  readonly #turns = new Turns();
  readonly #retry: Backoff;
  #own: Subnets = {};
  #peers: ReadonlyMap<string, Peer> | undefined;
  #reading: CloudReading | undefined;
  #failing = false;
  #throttled = false;
  /** Whether the tables were once as they have to be: what is changed afterwards is a repair. */
  #reached = false;
  #shown: readonly CloudFinding[] = [];
  #events: DriverEvents | undefined;

  constructor(input: CloudInput) {
    const { backend, host, log, timeout, ranges, store } = input;
    this.#input = input;
    this.#tables = new CloudTables({ backend, host, log, timeout });
    this.#retry = new Backoff({ first: RETRY_MS.first, max: backend.interval });
    if (backend.stale) this.#retirement = new Retirement({ ...backend.stale, ranges, store, log });
  }

  async prepare(): Promise<LeaseData> {
    return this.#input.backend.publish(await this.#facts());
  }

  /** The cloud is not asked yet: that it does not answer must not cost the lease. */
  async attach({ subnets }: OwnLease): Promise<number> {
    const { kernel, networks, extras, log } = this.#input;
    this.#own = subnets;
    await removeStaleDevices(kernel, new Set(), networks, log);
    const keeps = (dev: string | undefined) => dev === undefined && extras !== undefined;
    await removeStaleRoutes(kernel, { networks, keeps }, log);
    await removeStalePolicies(kernel, { networks, subnet: subnets.ipv4 }, log);
    await removeCharonRemains(kernel, this.#input.charonNote, log);
    const blackholes = extras?.(subnets) ?? [];
    await kernel.apply(blackholes.map((object) => ({ action: "put", object })));
    return (await this.#facts()).external.mtu;
  }

  /** Peers see to their own routes: only the first list of them leads to a look at the tables. */
  update(peers: ReadonlyMap<string, Peer>): Promise<void> {
    return this.#turns.take(async () => {
      const isFirst = this.#peers === undefined;
      this.#peers = peers;
      if (isFirst) await this.#look();
    });
  }

  async run(events: DriverEvents, signal: AbortSignal): Promise<void> {
    this.#events = events;
    const { pulse = () => {} } = events;
    while (!signal.aborted) {
      const pause = this.#pause();
      pulse(pause);
      await sleep(pause, signal);
      if (signal.aborted) return;
      pulse(LONGEST_LOOK_MS);
      await this.#turns.take(() => this.#look());
    }
  }

  async stop(): Promise<void> {}

  /** Nothing is made before there is a lease. */
  async abandon(): Promise<void> {}

  counts(): DataPathCounts {
    const wanted = this.#peers?.size ?? 0;
    const missing = [...(this.#peers?.values() ?? [])].filter(
      (peer) => this.#missing(peer).length > 0,
    ).length;
    return {
      wanted,
      programmed: wanted - missing,
      refused: 0,
      unusable: missing,
      objects: textsOf([this.#own]).length * (this.#reading?.tables.length ?? 0),
      failing: this.#failing ? 1 : 0,
    };
  }

  describe(key: string): PeerState {
    const peer = this.#peers?.get(key);
    return { objects: [], problems: peer ? this.#missing(peer) : [] };
  }

  /** Looks at the tables, sets right what is not, and tells. Never rejects. */
  async #look(): Promise<void> {
    const leased = this.#leased();
    let findings: readonly CloudFinding[];
    try {
      const facts = await this.#facts();
      const wishes = { own: textsOf([this.#own]), ranges: this.#input.ranges, leased };
      let look = await this.#tables.reach(facts, wishes);
      this.#note(look);
      const retired = await this.#retire(look, leased);
      if (retired.length > 0) {
        look = await this.#tables.reach(facts, { ...wishes, retired });
        this.#note(look);
      }
      findings = look.findings;
      this.#failing = !look.complete;
    } catch (error) {
      findings = [findingOf(error)];
      this.#failing = true;
      this.#throttled = isCloudError(error) && error.kind === "throttled";
    }
    if (!this.#failing) this.#retry.reset();
    this.#show(findings);
  }

  #note({ reading, applied, complete, findings }: Look): void {
    this.#reading = reading;
    this.#throttled = findings.some(({ finding }) => finding.code === "CLOUD_THROTTLED");
    const routes = applied.filter(({ action }) => action !== "set").length;
    if (this.#reached && routes > 0) {
      count(this.#input.stats.repairs, "route", routes);
      this.#events?.repaired?.({
        objects: { route: routes },
        owners: [],
        where: "route tables of the cloud",
      });
    }
    this.#reached ||= complete;
  }

  /** The routes of nodes that are gone which it is on this node to remove; the store being away is no failure of ours. */
  async #retire({ reading, place }: Look, leased: readonly string[] | undefined) {
    if (!this.#retirement || leased === undefined) return [];
    const { health, host } = this.#input;
    try {
      const chosen = await this.#retirement.choose(reading, place.self, leased, host.signal);
      health.clear("CLOUD_STALE_ROUTES");
      return chosen;
    } catch (error) {
      health.raise({
        code: "CLOUD_STALE_ROUTES",
        severity: "warning",
        title: "routes of nodes that are gone cannot be removed",
        text: findingOf(error).finding.text,
        fix: "The store has to let this node write <prefix>/leaders/cloud-routes; or set RemoveStaleRoutes to false.",
      });
      return [];
    }
  }

  #pause(): number {
    const { interval } = this.#input.backend;
    if (this.#failing) {
      const least = this.#throttled ? RETRY_MS.throttled : 0;
      return Math.min(Math.max(this.#retry.next(), least * (0.5 + Math.random())), interval);
    }
    // Nodes that started together shall not ask together.
    const regular = interval * (0.8 + Math.random() * 0.4);
    return Math.min(regular, Math.max(1_000, this.#retirement?.next ?? regular));
  }

  #show(findings: readonly CloudFinding[]): void {
    const { health } = this.#input;
    const is = (one: CloudFinding) => (other: CloudFinding) =>
      one.finding.code === other.finding.code && one.subject === other.subject;
    for (const old of this.#shown) {
      if (!findings.some(is(old))) health.clear(old.finding.code, old.subject);
    }
    for (const { finding, subject } of findings) health.raise(finding, subject);
    this.#shown = findings;
  }

  #leased(): readonly string[] | undefined {
    if (!this.#peers) return undefined;
    const peers = [...this.#peers.values()].flatMap(({ ipv4, ipv6 }) => [ipv4?.subnet, ipv6?.subnet]);
    return [...textsOf([this.#own]), ...peers.filter((subnet) => subnet !== undefined)];
  }

  #missing({ ipv4, ipv6 }: Peer): readonly string[] {
    const subnets = [ipv4?.subnet, ipv6?.subnet].filter((subnet) => subnet !== undefined);
    return (this.#reading?.tables ?? []).flatMap(({ id, routes }) =>
      subnets
        .filter((subnet) => !routes.some(({ dst, state }) => dst === subnet && state === "active"))
        .map((subnet) => `at the last look ${id} had no route to ${subnet} in force`),
    );
  }

  #facts(): Promise<HostFacts> {
    const { kernel, external } = this.#input;
    return gatherFacts(kernel, { external, devices: [], usesRoutes: false });
  }
}
