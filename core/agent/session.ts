import type { Repaired } from "../dataplane/repaired.ts";
import { charonNote, removeCharonRemains } from "../dataplane/stale-charon.ts";
import { rememberBackend } from "../host/last-backend.ts";
import { rememberIdentity } from "../host/node-id.ts";
import type { Lease, LeaseData, Subnets } from "../lease/lease.ts";
import { PeerTable } from "../lease/peers.ts";
import type { HeldLease, LeaseStore } from "../lease/store.ts";
import type { Kernel } from "../netlink/kernel.ts";
import { describeError, Fault } from "../observe/fault.ts";
import type { Health } from "../observe/health.ts";
import type { Log } from "../observe/log.ts";
import type { Loops, Pulse } from "../observe/loops.ts";
import { type Findings, OwnFindings } from "../observe/own-findings.ts";
import { sleep } from "../retry/backoff.ts";
import type { TrafficManager } from "../traffic/manager.ts";
import type { MemberKeeper } from "../traffic/members/keeper.ts";
import { composeAttrs } from "./attrs.ts";
import { networksOf } from "./backend.ts";
import type { Journal } from "./journal.ts";
import { LeaseWatch } from "./lease-watch.ts";
import { followPeers } from "./peers.ts";
import type { Prepared, Understood } from "./prepare.ts";
import { Publisher } from "./publisher.ts";
import { noteRepair } from "./repair-events.ts";
import type { Settings } from "./settings.ts";
import type { SubnetFileGuard } from "./subnet-file-guard.ts";
import { supervise } from "./supervise.ts";
import { reportBridge, wantedTraffic } from "./traffic.ts";

/** The keeper of the lease tells its state at least this often, ms; see LeaseStore.keep. */
const LEASE_SILENCE_MS = 120_000;

export interface SessionInput {
  readonly settings: Settings;
  readonly kernel: Kernel;
  readonly store: LeaseStore;
  readonly guard: SubnetFileGuard;
  readonly traffic: TrafficManager;
  readonly members: MemberKeeper;
  readonly log: Log;
  readonly health: Health;
  readonly loops: Loops;
  readonly journal: Journal;
  /** Aborted when the daemon stops. */
  readonly signal: AbortSignal;
}

/**
 * One config on one interface: device, lease, subnet file, peers, and the loops that keep them. When config or
 * interface change, the session is ended, which leaves everything in the kernel, and the next one adopts it.
 */
export class Session {
  readonly held: HeldLease;
  #prepared: Prepared;
  /** Resolves when all peers known at the start are in the kernel, or the session ended before that. */
  readonly ready: Promise<void>;
  /** The peers as they are routed to. */
  readonly peers: PeerTable;
  readonly #lease: LeaseWatch;
  #synced = false;
  readonly #input: SessionInput;
  /** What is found about peers. */
  readonly #findings: OwnFindings;
  readonly #over = new AbortController();
  readonly #signal: AbortSignal;
  readonly #loops: Promise<void>[] = [];

  /**
   * Makes the devices, acquires the lease, programs what follows from it, sets the traffic rules, writes the subnet
   * file and starts the loops. Throws a Fault when that fails; devices and a fresh lease are given up again then.
   */
  static async open(input: SessionInput, prepared: Prepared, previous: Subnets): Promise<Session> {
    const held = await acquireLease(input, prepared, previous);
    rememberIdentity(input.settings.subnetFile, prepared.identity);
    rememberBackend(
      input.settings.subnetFile,
      prepared.declarative ? undefined : prepared.config.backend.type,
    );
    const mtu = await attach(input, prepared, held);
    reportBridge(prepared.config, input.health);
    input.members.want(prepared.membersOnly);
    const rules = input.traffic.apply(wantedTraffic(prepared.config, held.lease.subnets, input.settings));
    // Rules for another subnet are gone before containers hear of this one; otherwise nobody has to wait.
    if (differs(previous, held.lease.subnets)) await rules;
    input.guard.set({
      networks: networksOf(prepared.config),
      subnets: held.lease.subnets,
      mtu,
      ipMasq: input.settings.ipMasq,
    });
    return new Session(input, prepared, held);
  }

  private constructor(input: SessionInput, prepared: Prepared, held: HeldLease) {
    this.#prepared = prepared;
    this.held = held;
    this.#lease = new LeaseWatch(held, input.journal);
    this.peers = new PeerTable({ own: held.lease, ranges: rangesOf(prepared) });
    this.#input = input;
    this.#findings = new OwnFindings(input.health);
    this.#signal = AbortSignal.any([input.signal, this.#over.signal]);
    this.#loop("lease", (pulse) => this.#keepLease(pulse));
    this.ready = this.#serve();
  }

  /** Config, interface and backend, as they are in use. */
  get prepared(): Prepared {
    return this.#prepared;
  }

  /**
   * Goes on with a config that differs in nothing but the traffic rules: they are set anew, and the backend notices
   * nothing of it. Resolves when the rules were tried once; what hinders them is a finding.
   */
  async adoptRules(understood: Understood): Promise<void> {
    const { config } = understood.reading;
    const { traffic, settings, health } = this.#input;
    this.#prepared = { ...this.#prepared, understood, config };
    reportBridge(config, health);
    await traffic.apply(wantedTraffic(config, this.held.lease.subnets, settings));
  }

  /** Whether all peers known at the start of the session are in the kernel. */
  get synced(): boolean {
    return this.#synced;
  }

  /** How the own lease stands; `secondsLeft` is absent for a reservation. */
  get lease() {
    return this.#lease.now();
  }

  /** The own lease with what it says to others. */
  get ownLease(): Lease {
    return this.#lease.lease;
  }

  /** Ends the loops within `patience` ms, and longer for a backend that asks for it; lease and data plane stay. */
  async end(patience: number): Promise<void> {
    this.#over.abort();
    await Promise.race([Promise.all(this.#loops), sleep(patience)]);
    this.#findings.end();
    const { stopPatience = 0 } = this.#prepared.driver;
    await Promise.race([this.#letGo(), sleep(Math.max(patience / 2, stopPatience))]);
  }

  async #serve(): Promise<void> {
    const { store, log, health, guard } = this.#input;
    const { config, external, identity, driver } = this.#prepared;
    const publisher = new Publisher(store, health, this.#signal);
    const events = {
      published: (data: LeaseData) =>
        publisher.publish(composeAttrs(data, external, config.families, identity)),
      mtu: (mtu: number) => guard.setMtu(mtu),
      repaired: (repaired: Repaired) => noteRepair(this.#input.journal, repaired),
    };
    await this.#firstSync(log, this.#findings);
    if (this.#signal.aborted) return;
    this.#synced = true;
    this.#loop("data path", (pulse) => driver.run({ ...events, pulse }, this.#signal));
  }

  async #firstSync(log: Log, health: Findings): Promise<void> {
    const { config, driver } = this.#prepared;
    if (!driver.watchesPeers) return driver.update(new Map(), { added: [], changed: [], removed: [] });
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#signal.addEventListener("abort", () => resolve(), { once: true });
    this.#loop("peers", (pulse) =>
      followPeers({
        store: this.#input.store,
        driver,
        table: this.peers,
        families: config.families,
        members: this.#input.members,
        log,
        health,
        journal: this.#input.journal,
        pulse,
        synced: () => resolve(),
        signal: this.#signal,
      }),
    );
    return promise;
  }

  #keepLease(pulse: Pulse): Promise<void> {
    return this.#input.store.keep(
      this.held,
      (state) => {
        pulse(LEASE_SILENCE_MS);
        this.#lease.note(state);
      },
      this.#signal,
    );
  }

  #loop(name: string, loop: (pulse: Pulse) => Promise<void>): void {
    const { health, loops } = this.#input;
    this.#loops.push(supervise(name, loop, { health, loops, signal: this.#signal }));
  }

  async #letGo(): Promise<void> {
    try {
      await this.#prepared.driver.stop();
    } catch (error) {
      this.#input.log.warn(`the backend did not stop cleanly: ${describeError(error)}`);
    }
  }
}

/** Makes the devices and acquires the lease; if that fails, or is aborted, the devices are removed again. */
async function acquireLease(
  { store, log, signal }: SessionInput,
  prepared: Prepared,
  previous: Subnets,
): Promise<HeldLease> {
  const { config, external, identity, driver } = prepared;
  try {
    const attrs = composeAttrs(await driver.prepare(), external, config.families, identity);
    const held = await store.acquire({ ranges: rangesOf(prepared), attrs, previous }, signal);
    log.info(`lease ${held.lease.key}`, {
      origin: held.origin,
      ...(held.reservation ? { reservation: true } : {}),
    });
    return held;
  } catch (error) {
    await abandon(driver, error);
    throw error;
  }
}

/**
 * Programs what follows from the lease; if that fails, devices and a lease made just now are given up again. A charon of
 * another backend ends first: it would make states anew for tunnels that are taken away.
 */
async function attach(
  { kernel, store, log, settings }: SessionInput,
  { driver, keepsCharon }: Prepared,
  held: HeldLease,
): Promise<number> {
  try {
    if (!keepsCharon) await removeCharonRemains(kernel, charonNote(settings.subnetFile), log);
    return await driver.attach({ subnets: held.lease.subnets });
  } catch (error) {
    await abandon(driver, error);
    if (held.origin === "fresh") await store.release();
    throw error;
  }
}

async function abandon(driver: Prepared["driver"], error: unknown): Promise<void> {
  try {
    await driver.abandon();
  } catch (second) {
    throw new Fault(
      "START_FAILED",
      `${describeError(error)}; undoing it failed too: ${describeError(second)}`,
      { hint: error instanceof Fault ? error.hint : "", cause: error },
    );
  }
}

/** Whether there was a subnet of a family before, and it is another one now. */
function differs(previous: Subnets, now: Subnets): boolean {
  return (["ipv4", "ipv6"] as const).some(
    (family) => previous[family] !== undefined && previous[family] !== now[family],
  );
}

function rangesOf({ config }: Prepared) {
  return { ...(config.ipv4 ? { ipv4: config.ipv4 } : {}), ...(config.ipv6 ? { ipv6: config.ipv6 } : {}) };
}
