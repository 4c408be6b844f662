import { Fault } from "../../observe/fault.ts";
import type { Health } from "../../observe/health.ts";
import { Backoff, sleep } from "../../retry/backoff.ts";
import type { LeaseAttrs, Subnets } from "../lease.ts";
import { requireMargin } from "../renewal.ts";
import type { StoreStats } from "../stats.ts";
import type {
  ConfigDocument,
  HeldLease,
  LeaseRequest,
  LeaseState,
  LeaseStore,
  PeerUpdate,
} from "../store.ts";
import { Acquisition } from "./acquire.ts";
import { type EtcdClient, type EtcdOptions, openEtcd } from "./client.ts";
import { readConfig } from "./config.ts";
import { watchConfig } from "./config-watch.ts";
import { SubnetFeed } from "./feed.ts";
import { LeaseKeeper } from "./keep.ts";
import { Layout } from "./layout.ts";
import { Leadership } from "./leadership.ts";
import { type Listing, listSubnets } from "./list.ts";
import { Outage } from "./outage.ts";
import { OwnKey } from "./own-key.ts";

export interface EtcdStoreOptions extends EtcdOptions {
  /** `--etcd-prefix`. */
  readonly prefix: string;
  /** Time to live of the own lease, ms. */
  readonly ttlMs: number;
  /** ms before its end at which it is renewed; above 0 and below `ttlMs`. */
  readonly marginMs: number;
  readonly health: Health;
  /** ms a peer's removal is held back soon after trouble with etcd (see held-deletes.ts); default 5 s. */
  readonly holdDeletesMs?: number;
}

/** A list this old no longer spares the watch its own: the watch would have too much to catch up on. */
const FRESH_MS = 300_000;

/** Time for giving the lease back when the daemon stops. */
const RELEASE_MS = 3_000;

/**
 * Opens the etcd store. Nothing is connected yet: what is wrong with etcd shows in the first call.
 * @throws Fault `ETCD_ENDPOINT`, `ETCD_TLS_FILE`, `LEASE_MARGIN`.
 */
export async function openEtcdStore(options: EtcdStoreOptions): Promise<EtcdStore> {
  requireMargin(options.ttlMs, options.marginMs);
  return new EtcdStore(openEtcd(options), options);
}

/** Leases in etcd v3, in upstream's layout. */
export class EtcdStore implements LeaseStore {
  readonly description: string;
  /** Counters for metrics and benchmarks. */
  readonly stats: StoreStats;
  readonly #client: EtcdClient;
  readonly #layout: Layout;
  readonly #options: EtcdStoreOptions;
  readonly #closing = new AbortController();
  readonly #feeds = new Set<SubnetFeed>();
  readonly #leaderships = new Map<string, Leadership>();
  #fresh: { readonly listing: Listing; readonly at: number } | undefined;
  #key: OwnKey | undefined;
  #keeper: LeaseKeeper | undefined;

  constructor(client: EtcdClient, options: EtcdStoreOptions) {
    this.#client = client;
    this.#options = options;
    this.#layout = new Layout(options.prefix);
    this.stats = client.stats;
    this.description = `etcd ${client.urls.join(",")} ${this.#layout.subnets}`;
  }

  readConfig(signal: AbortSignal): Promise<ConfigDocument> {
    return readConfig(this.#client, this.#layout, this.#options.health, this.#either(signal));
  }

  watchConfig(known: ConfigDocument, signal: AbortSignal): AsyncIterable<ConfigDocument> {
    return watchConfig(this.#client, this.#layout, this.#options.health, known, this.#either(signal));
  }

  async acquire(request: LeaseRequest, signal: AbortSignal): Promise<HeldLease> {
    const { log, health, ttlMs } = this.#options;
    const common = { client: this.#client, layout: this.#layout, log, ttlMs };
    const acquisition = new Acquisition({ ...common, health }, request, this.#either(signal));
    const { own, held, listing } = await acquisition.run();
    this.#key = new OwnKey({ ...common, onVanished: () => this.#relist() }, own);
    this.#fresh = { listing, at: performance.now() };
    return held;
  }

  async keep(held: HeldLease, onState: (state: LeaseState) => void, signal: AbortSignal): Promise<void> {
    const { log, health, marginMs } = this.#options;
    const key = this.#ownKey(held.lease.key);
    const isWatched = () => [...this.#feeds].some((feed) => feed.live);
    const keeper = new LeaseKeeper({ key, log, health, marginMs, isWatched });
    this.#keeper = keeper;
    await keeper.run(onState, this.#either(signal));
    if (this.#keeper === keeper) this.#keeper = undefined;
  }

  /** Waits, with back-off and a finding, while etcd is away. */
  async updateAttrs(attrs: LeaseAttrs, signal: AbortSignal): Promise<void> {
    const key = this.#ownKey();
    const either = this.#either(signal);
    const outage = new Outage(this.#options.health, "updating the lease");
    const backoff = new Backoff({ first: 200, max: 2_000 });
    try {
      for (;;) {
        try {
          return await key.update(attrs, either);
        } catch (error) {
          if (either.aborted || !(error instanceof Fault) || !error.code.startsWith("ETCD_")) throw error;
          outage.raise(error);
          await sleep(backoff.next(), either);
        }
      }
    } finally {
      outage.clear();
    }
  }

  async *watchPeers(signal: AbortSignal): AsyncGenerator<PeerUpdate> {
    const { log, health, holdDeletesMs = 5_000 } = this.#options;
    const feed = new SubnetFeed({
      client: this.#client,
      layout: this.#layout,
      log,
      health,
      holdDeletesMs,
      onEvent: (key, modRevision) => {
        if (this.#key?.concerns(key, modRevision)) this.#keeper?.poke();
      },
      onGap: () => this.#keeper?.poke(),
    });
    this.#feeds.add(feed);
    const fresh = this.#fresh;
    this.#fresh = undefined;
    try {
      yield* feed.run(
        this.#either(signal),
        fresh && performance.now() - fresh.at < FRESH_MS ? fresh.listing : undefined,
      );
    } finally {
      this.#feeds.delete(feed);
    }
  }

  async takenSubnets(signal: AbortSignal): Promise<readonly Subnets[]> {
    const { leases, bad } = await listSubnets(this.#client, this.#layout, this.#either(signal));
    return [...leases, ...bad].flatMap(({ subnets }) => subnets ?? []);
  }

  async lead(task: string, ms: number, signal: AbortSignal): Promise<boolean> {
    const known = this.#leaderships.get(task);
    const holder = this.#key?.own.key ?? "";
    const leadership = known ?? new Leadership({ client: this.#client, layout: this.#layout, task, holder });
    this.#leaderships.set(task, leadership);
    return await leadership.claim(ms, this.#either(signal));
  }

  reconnect(): void {
    this.#client.reconnect();
  }

  /** Bounded by a few seconds; throws a Fault when etcd cannot be reached. */
  async release(): Promise<void> {
    await this.#key?.release(this.#either(AbortSignal.timeout(RELEASE_MS)));
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#fresh = undefined;
    this.#client.close();
  }

  #relist(): void {
    for (const feed of this.#feeds) feed.relist();
  }

  #either(signal: AbortSignal): AbortSignal {
    return AbortSignal.any([signal, this.#closing.signal]);
  }

  #ownKey(key = this.#key?.own.key): OwnKey {
    if (!this.#key || this.#key.own.key !== key) {
      throw new Fault("LEASE_NOT_HELD", `the lease ${key ?? ""} was not acquired by this store`);
    }
    return this.#key;
  }
}
