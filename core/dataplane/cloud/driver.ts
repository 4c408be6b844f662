import type { OwnLease } from "../../../plugins/sdk/backend.ts";
import type { CloudBackend, CloudHost, CloudPlace, CloudReading } from "../../../plugins/sdk/cloud.ts";
import type { ExternalInterface } from "../../../plugins/sdk/facts.ts";
import type { LeaseData, Peer, Subnets } from "../../lease/lease.ts";
import type { LeaseStore } from "../../lease/store.ts";
import type { Prefix } from "../../net/prefix.ts";
import type { Kernel } from "../../netlink/kernel.ts";
import type { RouteObject } from "../../netlink/objects.ts";
import { count } from "../../observe/counts.ts";
import { describeError } from "../../observe/fault.ts";
import type { Health } from "../../observe/health.ts";
import type { Log } from "../../observe/log.ts";
import { Backoff, sleep } from "../../retry/backoff.ts";
import { Turns } from "../../retry/turns.ts";
import type { Driver, DriverEvents } from "../driver.ts";
import type { DataPathCounts, PeerState } from "../peer-state.ts";
import type { DataplaneStats } from "../stats.ts";
import { brokenHost, type CloudFinding, findingOf, isCloudError, staleRoutes } from "./finding.ts";
import { HostSide } from "./host-side.ts";
import { noteLeftRoutes } from "./left-routes.ts";
import type { Orphan } from "./orphans.ts";
import type { LeaseRange } from "./plan.ts";
import { rest } from "./rest.ts";
import { Retirement, textsOf } from "./retirement.ts";
import { ShownFindings } from "./shown.ts";
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
  readonly store: Pick<LeaseStore, "lead" | "takenSubnets">;
  readonly health: Health;
  readonly log: Log;
  readonly stats: DataplaneStats;
  /** Longest time of one call of the plugin, ms. */
  readonly timeout: number;
  /** Where is noted which routes outlive this backend, and its `Type`; absent, nobody wants to know. */
  readonly left?: { readonly file: string; readonly backend: string };
}

/** First pause after a failure, after "fewer calls, please" a longer one, and the longest, ms. */
const RETRY_MS = { first: 1_000, throttled: 5_000, longest: 600_000 } as const;
/** How often the host is looked at without any notice, ms. */
const HOST_TIMER_MS = 60_000;
/** Longest one look may take: every call of it at its time-out, ms. */
const LONGEST_LOOK_MS = 1_800_000;

/** Keeps a cloud's route tables as they have to be for this node; see CloudBackend of the contract. */
export class CloudDriver implements Driver {
  readonly watchesPeers = true;
  readonly #input: CloudInput;
  readonly #tables: CloudTables;
  readonly #retirement: Retirement | undefined;
  readonly #hostSide: HostSide;
  readonly #turns = new Turns();
  readonly #repairs = new Turns();
  readonly #retry: Backoff;
  #own: Subnets = {};
  #peers: ReadonlyMap<string, Peer> | undefined;
  #reading: CloudReading | undefined;
  #failing = false;
  #throttled = false;
  /** Whether the tables were once as they have to be: what is changed afterwards is a repair. */
  #reached = false;
  readonly #shown: ShownFindings;
  readonly #shownOfHost: ShownFindings;
  #events: DriverEvents | undefined;
  #mtu = 0;
  /** Aborted when this driver stops: another one may go on in its place. */
  readonly #over = new AbortController();
  readonly #signal: AbortSignal;

  constructor(input: CloudInput) {
    const { backend, host, log, timeout, ranges, store, health } = input;
    this.#input = input;
    this.#signal = AbortSignal.any([host.signal, this.#over.signal]);
    this.#tables = new CloudTables({ backend, host: { ...host, signal: this.#signal }, log, timeout });
    this.#hostSide = new HostSide(input);
    this.#shown = new ShownFindings(health);
    this.#shownOfHost = new ShownFindings(health);
    this.#retry = new Backoff({
      first: RETRY_MS.first,
      max: Math.min(backend.interval, RETRY_MS.longest),
    });
    if (backend.stale) this.#retirement = new Retirement({ ...backend.stale, ranges, store, log });
  }

  async prepare(): Promise<LeaseData> {
    return this.#input.backend.publish(await this.#hostSide.facts());
  }

  /** The cloud is not asked yet: that it does not answer must not cost the lease. */
  async attach({ subnets }: OwnLease): Promise<number> {
    this.#own = subnets;
    this.#mtu = await this.#hostSide.attach(subnets);
    return this.#mtu;
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
    await Promise.all([
      this.#hostSide.listen(() => void this.#repairHost(), signal),
      this.#keepHost(signal),
      this.#work(events, signal),
    ]);
  }

  /** In case a notice was never sent, or a repair was refused. */
  async #keepHost(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#repairHost();
      await sleep(HOST_TIMER_MS, signal);
    }
  }

  async #work({ pulse = () => {} }: DriverEvents, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await rest(this.#pause(), signal, pulse);
      if (signal.aborted) return;
      pulse(LONGEST_LOOK_MS);
      await this.#turns.take(() => this.#look());
    }
  }

  /** A look that is under way is broken off: it must not change or tell anything beside the next driver. */
  async stop(): Promise<void> {
    this.#over.abort();
    // When the daemon ends, what is wrong is not over.
    if (this.#input.host.signal.aborted) return;
    this.#shown.end();
    this.#shownOfHost.end();
  }

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
    const findings: CloudFinding[] = [];
    try {
      const facts = await this.#hostSide.facts();
      const wishes = { own: textsOf([this.#own]), ranges: this.#input.ranges };
      let look = await this.#tables.reach(facts, wishes);
      this.#note(look);
      const retired = await this.#askStore(findings, [], () => this.#retire(look, leased));
      if (retired.length > 0) {
        const isGone = (route: Orphan) =>
          this.#askStore(findings, false, async () => this.#retirement?.isGone(route, this.#signal) ?? false);
        look = await this.#tables.reach(facts, { ...wishes, retired, isGone });
        this.#note(look);
      }
      findings.unshift(...look.findings);
      this.#failing = !look.complete;
    } catch (error) {
      findings.splice(0, findings.length, findingOf(error));
      this.#failing = true;
      this.#throttled = isCloudError(error) && error.kind === "throttled";
    }
    if (!this.#failing) this.#retry.reset();
    // What breaks a look off is no finding.
    if (!this.#signal.aborted) this.#shown.show(findings);
  }

  /** Sets right what is this backend's on the host, and tells the MTU. Never rejects. */
  #repairHost(): Promise<void> {
    return this.#repairs.take(async () => {
      if (this.#signal.aborted) return;
      try {
        const { mtu, repaired } = await this.#hostSide.repair();
        if (mtu !== this.#mtu) this.#events?.mtu(mtu);
        this.#mtu = mtu;
        if (repaired > 0) this.#tellRepaired(repaired);
        this.#shownOfHost.show([]);
      } catch (error) {
        this.#shownOfHost.show([brokenHost(error)]);
      }
    });
  }

  #tellRepaired(route: number, where?: string): void {
    count(this.#input.stats.repairs, "route", route);
    this.#events?.repaired?.({ objects: { route }, owners: [], ...(where === undefined ? {} : { where }) });
  }

  #note({ reading, applied, complete, findings, place }: Look): void {
    this.#reading = reading;
    this.#throttled = findings.some(({ finding }) => finding.code === "CLOUD_THROTTLED");
    const routes = applied.filter(({ action }) => action !== "set").length;
    if (this.#reached && routes > 0) this.#tellRepaired(routes, "route tables of the cloud");
    this.#reached ||= complete;
    if (complete) this.#noteLeft(reading, place);
  }

  /** Notes what stays in the cloud when this host gets another backend. */
  #noteLeft({ tables }: CloudReading, { self, summary }: CloudPlace): void {
    const { left, log } = this.#input;
    if (!left || this.#signal.aborted) return;
    const routes = tables.flatMap(({ id }) => textsOf([this.#own]).map((dst) => `${dst} → ${self} in ${id}`));
    try {
      noteLeftRoutes(left.file, { backend: left.backend, place: summary, routes });
    } catch (error) {
      log.warn(`cannot note the routes in the cloud in ${left.file}: ${describeError(error)}`);
    }
  }

  /** The routes of nodes that are gone which it is on this node to remove. Rejects when the store is away. */
  async #retire({ reading, place }: Look, leased: readonly string[] | undefined): Promise<readonly Orphan[]> {
    if (!this.#retirement || leased === undefined) return [];
    return this.#retirement.choose(reading, place.self, leased, this.#signal);
  }

  /** What the store answers, else `otherwise` and a finding: that it is away is no failure of the tables. */
  async #askStore<T>(findings: CloudFinding[], otherwise: T, ask: () => Promise<T>): Promise<T> {
    try {
      return await ask();
    } catch (error) {
      findings.push(staleRoutes(error));
      return otherwise;
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
}
