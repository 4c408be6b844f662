import type { DeclarativeBackend, OwnLease, PeerDelta, PeerPlan } from "../../plugins/sdk/backend.ts";
import type { ExternalInterface, HostFacts } from "../../plugins/sdk/facts.ts";
import type { LeaseData, Peer, Subnets } from "../lease/lease.ts";
import type { Prefix } from "../net/prefix.ts";
import type { Kernel } from "../netlink/kernel.ts";
import type { KernelObject, RouteObject, SysctlObject } from "../netlink/objects.ts";
import { count } from "../observe/counts.ts";
import type { Health } from "../observe/health.ts";
import type { Log } from "../observe/log.ts";
import { OwnFindings } from "../observe/own-findings.ts";
import { Pace } from "../retry/pace.ts";
import { Turns } from "../retry/turns.ts";
import { ensureDevice } from "./device.ts";
import type { Driver, DriverEvents } from "./driver.ts";
import { gatherFacts } from "./facts.ts";
import { PeerProblems } from "./peer-problems.ts";
import type { DataPathCounts, PeerState } from "./peer-state.ts";
import { Programmer } from "./programmer.ts";
import type { Reconciled } from "./reconcile.ts";
import { RepairLoop } from "./repair.ts";
import { findRepaired } from "./repaired.ts";
import { isSetting } from "./settings.ts";
import { removeStaleDevices, removeStaleRoutes } from "./stale.ts";
import { removeStalePolicies } from "./stale-policies.ts";
import { type DataplaneStats, newDataplaneStats } from "./stats.ts";

export interface DeclarativeInput {
  readonly backend: DeclarativeBackend;
  readonly kernel: Kernel;
  readonly external: ExternalInterface;
  /** Cluster networks now and of the last run. */
  readonly networks: readonly Prefix[];
  /** What the operator wants beside the backend's own objects (a blackhole for the own subnet). */
  readonly extras?: (subnets: Subnets) => readonly RouteObject[];
  /** The daemon starts: another backend may have run here before, and its routes go before the subnet file is written. */
  readonly starting?: boolean;
  readonly writeSysctl: (object: SysctlObject) => string | undefined;
  readonly health: Health;
  readonly log: Log;
  /** Counted into; absent, nobody reads them. */
  readonly stats?: DataplaneStats;
}

/** Name under which the node's own objects are wanted; no subnet key looks like it. */
const OWN = "own";

/** Runs a backend that says what it wants as data: plans, programs, and keeps the kernel as planned. */
export class DeclarativeDriver implements Driver {
  readonly watchesPeers: boolean;
  readonly #input: DeclarativeInput;
  readonly #programmer: Programmer;
  readonly #findings: OwnFindings;
  readonly #problems: PeerProblems;
  readonly #turns = new Turns();
  readonly #made = new Set<string>();
  /** The MAC each device had last: one that has to be made again gets it back, so that peers' entries stay right. */
  readonly #macs = new Map<string, string>();
  /** The MTU each device was wanted with at the last look. */
  readonly #mtus = new Map<string, number>();
  #facts: HostFacts | undefined;
  /** The facts (as JSON) that all plans in force were made from; empty while some of them are not made or not written. */
  #plannedFrom = "";
  #lease: OwnLease | undefined;
  #peers: ReadonlyMap<string, Peer> = new Map();
  #repair: RepairLoop | undefined;
  #told = "";
  #toldMtu = 0;
  /** Devices that were gone and had to be made again since the last look. */
  #remade = 0;
  readonly #stats: DataplaneStats;

  constructor(input: DeclarativeInput) {
    this.#input = input;
    this.#stats = input.stats ?? newDataplaneStats();
    this.watchesPeers = input.backend.ignoresPeers !== true;
    this.#findings = new OwnFindings(input.health);
    this.#problems = new PeerProblems(this.#findings);
    this.#programmer = new Programmer({
      kernel: input.kernel,
      health: this.#findings,
      writeSysctl: input.writeSysctl,
      networks: input.networks,
      external: input.external.name,
      usesRoutes: input.backend.usesRoutes === true,
      stats: this.#stats,
    });
  }

  async prepare(): Promise<LeaseData> {
    const facts = await this.#readHost();
    const data = this.#input.backend.publish(facts);
    this.#told = JSON.stringify(data);
    return data;
  }

  async attach(lease: OwnLease): Promise<number> {
    this.#lease = lease;
    const facts = this.#facts ?? (await this.#readHost());
    const { kernel, networks, log } = this.#input;
    const devices = new Set(Object.keys(facts.links));
    await removeStaleDevices(kernel, devices, networks, log);
    if (this.#input.starting && !this.#usesUnderlay(devices)) {
      const keeps = (dev: string | undefined) => dev === undefined || devices.has(dev);
      await removeStaleRoutes(kernel, { networks, keeps }, log);
    }
    if (this.#input.starting)
      await removeStalePolicies(kernel, { networks, subnet: lease.subnets.ipv4 }, log);
    const own = this.#planOwn(facts);
    await this.#programmer.change(new Map([[OWN, own]]));
    this.#toldMtu = this.#input.backend.mtu(facts);
    return this.#toldMtu;
  }

  update(peers: ReadonlyMap<string, Peer>, delta: PeerDelta): Promise<void> {
    return this.#turns.take(async () => {
      this.#peers = peers;
      for (const key of delta.removed) this.#problems.forget(key);
      try {
        // The first time the kernel may hold anything from before, after a failure it may lack anything.
        await (this.#plannedFrom === "" ? this.#changeAll() : this.#change(delta));
      } catch (error) {
        this.#plannedFrom = "";
        throw error;
      }
      if (this.#programmer.failing.size > 0) this.#repair?.retrySoon();
    });
  }

  async run(events: DriverEvents, signal: AbortSignal): Promise<void> {
    const { kernel, log } = this.#input;
    this.#repair = new RepairLoop({
      kernel,
      log,
      health: this.#findings,
      signal,
      stats: this.#stats,
      pulse: events.pulse ?? (() => {}),
      isDisturbed: (notice) => this.#programmer.isDisturbed(notice),
      repair: () => this.#turns.take(() => this.#refresh(events)),
    });
    await this.#repair.keep();
    this.#repair = undefined;
  }

  async stop(): Promise<void> {
    this.#findings.end();
    await this.#turns.take(async () => {});
  }

  async abandon(): Promise<void> {
    this.#findings.end();
    for (const name of this.#made) await this.#input.kernel.deleteLink(name);
    this.#made.clear();
  }

  counts(): DataPathCounts {
    const refused = [...this.#programmer.failingOwners].filter((owner) => this.#peers.has(owner));
    const unusable = this.watchesPeers ? this.#problems.keys : [];
    const wanted = this.watchesPeers ? this.#peers.size : 0;
    return {
      wanted,
      programmed: wanted - new Set([...refused, ...unusable]).size,
      refused: refused.length,
      unusable: unusable.length,
      objects: this.#programmer.size,
      failing: this.#programmer.failing.size,
    };
  }

  describe(key: string): PeerState {
    return { objects: this.#programmer.describe(key), problems: this.#problems.of(key) };
  }

  /** Whether routes to peers may lie on the external interface: without a device of its own, or beside it. */
  #usesUnderlay(devices: ReadonlySet<string>): boolean {
    const { ignoresPeers, usesRoutes } = this.#input.backend;
    return ignoresPeers !== true && (usesRoutes === true || devices.size === 0);
  }

  async #changeAll(): Promise<void> {
    const facts = this.#facts ?? (await this.#readHost());
    await this.#planAll(facts);
    await this.#programmer.reconcile();
    this.#plannedFrom = JSON.stringify(facts);
  }

  async #change(delta: PeerDelta): Promise<void> {
    const facts = this.#facts ?? (await this.#readHost());
    const changes = new Map<string, readonly KernelObject[] | undefined>();
    const pace = new Pace();
    for (const key of delta.removed) changes.set(key, undefined);
    for (const peer of [...delta.added, ...delta.changed]) {
      changes.set(peer.key, this.#plan(peer, facts));
      if (pace.isDue()) await pace.rest();
    }
    await this.#programmer.change(changes);
  }

  /** Devices, facts and plans anew, then a full comparison. Returns what had to be repaired. */
  async #refresh(events: DriverEvents): Promise<{ repaired: number; failing: boolean }> {
    const facts = await this.#readHost();
    const text = JSON.stringify(facts);
    if (text !== this.#plannedFrom) {
      this.#plannedFrom = "";
      await this.#planAll(facts);
    }
    this.#announce(facts, events);
    const result = await this.#programmer.reconcile();
    this.#plannedFrom = text;
    const repaired = this.#tellRepaired(result, events);
    return { repaired, failing: result.failures.length > 0 };
  }

  /** Counts and tells what a look set right; returns the number of objects. */
  #tellRepaired(result: Reconciled, events: DriverEvents): number {
    const { objects, owners } = findRepaired(result, (identity) => this.#programmer.ownerOf(identity));
    if (this.#remade > 0) count(objects, "link", this.#remade);
    this.#remade = 0;
    for (const [kind, number] of Object.entries(objects)) count(this.#stats.repairs, kind, number);
    const total = Object.values(objects).reduce((sum, number) => sum + number, 0);
    if (total > 0) events.repaired?.({ objects, owners: owners.filter((owner) => owner !== OWN) });
    return total;
  }

  async #planAll(facts: HostFacts): Promise<void> {
    this.#programmer.stageOnly(new Set([OWN, ...this.#peers.keys()]));
    if (this.#lease) this.#programmer.stage(OWN, this.#planOwn(facts));
    const pace = new Pace();
    for (const peer of this.#peers.values()) {
      this.#programmer.stage(peer.key, this.#plan(peer, facts));
      if (pace.isDue()) await pace.rest();
    }
  }

  #announce(facts: HostFacts, events: DriverEvents): void {
    // A device that vanished since it was made has no MAC to tell; the look that its notice brings makes it again.
    if (this.#programmer.devices.some((name) => facts.links[name] === undefined)) return;
    const data = this.#input.backend.publish(facts);
    const text = JSON.stringify(data);
    if (text !== this.#told) {
      this.#told = text;
      events.published(data);
    }
    const mtu = this.#input.backend.mtu(facts);
    if (mtu !== this.#toldMtu) {
      this.#toldMtu = mtu;
      events.mtu(mtu);
    }
  }

  /** Makes the devices be there and reads the host as it is then. */
  async #readHost(): Promise<HostFacts> {
    const { backend, kernel, external, log } = this.#input;
    const usesRoutes = backend.usesRoutes === true;
    const bare = await gatherFacts(kernel, { external, devices: [], usesRoutes: false });
    const links = backend.links(bare);
    for (const link of links) {
      // Before it is tried: a device that was created but could not be brought up has to go, too.
      if ((await kernel.link(link.name)) === undefined) {
        this.#made.add(link.name);
        if (this.#repair) this.#remade += 1;
      }
      const known = this.#macs.get(link.name);
      const wanted = link.type === "vxlan" && known !== undefined ? { ...link, mac: known } : link;
      await ensureDevice(kernel, wanted, log, this.#mtus.get(link.name));
      this.#mtus.set(link.name, link.mtu);
    }
    const devices = links.map((link) => link.name);
    this.#programmer.own(
      devices,
      links.some((link) => link.type === "vxlan" && link.vxlan.learning === true),
    );
    const facts = await gatherFacts(kernel, { external, devices, usesRoutes });
    for (const { name, mac } of Object.values(facts.links)) if (mac !== undefined) this.#macs.set(name, mac);
    this.#facts = facts;
    return facts;
  }

  #planOwn(facts: HostFacts): readonly KernelObject[] {
    if (!this.#lease) return [];
    const objects = this.#input.backend.own(this.#lease, facts);
    this.#programmer.stageSettings(objects.filter(isSetting));
    return [...objects, ...(this.#input.extras?.(this.#lease.subnets) ?? [])];
  }

  #plan(peer: Peer, facts: HostFacts): readonly KernelObject[] {
    let plan: PeerPlan;
    try {
      plan = this.#input.backend.peer(peer, facts);
    } catch (error) {
      plan = {
        objects: [],
        problems: [`the backend cannot plan it: ${error instanceof Error ? error.message : error}`],
      };
    }
    this.#problems.note(peer.key, plan.problems ?? []);
    return plan.objects;
  }
}
