import { type Fault, toFault } from "../../observe/fault.ts";
import type { Health } from "../../observe/health.ts";
import type { Log } from "../../observe/log.ts";
import { Backoff, sleep } from "../../retry/backoff.ts";
import { PendingUpdate } from "../changes.ts";
import { isBad, type StoredLease } from "../entry.ts";
import type { PeerUpdate } from "../store.ts";
import type { EtcdClient } from "./client.ts";
import { HeldDeletes } from "./held-deletes.ts";
import { JunkKeys } from "./junk.ts";
import type { Layout } from "./layout.ts";
import { decodeStored, type Listing, listSubnets } from "./list.ts";
import { Outage } from "./outage.ts";
import { runWatch, type WatchEvent } from "./watch.ts";

export interface FeedOptions {
  readonly client: EtcdClient;
  readonly layout: Layout;
  readonly log: Log;
  readonly health: Health;
  /** ms a removal is held back after trouble with etcd; see {@link HeldDeletes}. */
  readonly holdDeletesMs: number;
  /** Told of every write to and deletion of a subnet key, so that the keeper of the own lease can look. */
  readonly onEvent: (key: string, modRevision: number | "deleted") => void;
  /** Told when events may have been missed: after every new watch but the first. */
  readonly onGap: () => void;
}

/** A watch that lived this long is no failed try: the finding is cleared and back-off starts over. */
const SETTLED_MS = 1_000;

/** Trouble with etcd counts as recent for so long. */
const RECENT_TROUBLE_MS = 60_000;

/**
 * The other nodes' leases as a stream of updates: one list, then a watch from the revision after it. A lost stream is
 * taken up again at the revision last told, which loses nothing; a compacted revision, another cluster or a store whose
 * revision went back lead to a new list.
 */
export class SubnetFeed {
  readonly #options: FeedOptions;
  readonly #outage: Outage;
  readonly #junk: JunkKeys;
  readonly #pending = new PendingUpdate();
  readonly #held: HeldDeletes;
  readonly #backoff = new Backoff({ first: 100, max: 1_000 });
  /** Keys the consumer knows. */
  readonly #keys = new Set<string>();
  #wake: (() => void) | undefined;
  #watch = new AbortController();
  #live = false;
  #listed = false;
  #watched = false;
  #mustList = true;
  /** Everything up to this revision has been told. */
  #revision = 0;
  #clusterId = "";

  constructor(options: FeedOptions) {
    this.#options = options;
    this.#outage = new Outage(options.health, "watching the other nodes");
    this.#junk = new JunkKeys(options.health, options.layout, options.client.stats);
    this.#held = new HeldDeletes(options.holdDeletesMs, (keys) => {
      for (const key of keys) this.#keys.delete(key);
      this.#tell({ type: "changes", puts: [], deletes: keys, revision: this.#revision });
    });
  }

  /** Whether a watch stands, so that events come by themselves. */
  get live(): boolean {
    return this.#live;
  }

  /** Drops what is known and lists anew: something shows that the store is not the one that was watched. */
  relist(): void {
    this.#mustList = true;
    this.#watch.abort();
  }

  /** The updates; ends on abort. `fresh` spares the first list. */
  async *run(signal: AbortSignal, fresh: Listing | undefined): AsyncGenerator<PeerUpdate> {
    const inner = new AbortController();
    const all = AbortSignal.any([signal, inner.signal]);
    const wake = () => this.#wake?.();
    all.addEventListener("abort", wake);
    const producer = this.#produce(all, fresh);
    try {
      while (!signal.aborted) {
        const update = this.#pending.take();
        if (update) {
          yield update;
          continue;
        }
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
          if (all.aborted) resolve();
        });
        this.#wake = undefined;
      }
    } finally {
      inner.abort();
      this.#watch.abort();
      this.#held.clear();
      await producer;
    }
  }

  async #produce(signal: AbortSignal, fresh: Listing | undefined): Promise<void> {
    if (fresh) this.#take(fresh);
    while (!signal.aborted) {
      const fault = (await this.#list(signal)) ?? (await this.#follow(signal));
      if (signal.aborted) break;
      if (fault) this.#outage.raise(fault);
      // Also after a watch that ended without fault (compacted): nothing here may spin.
      await sleep(this.#backoff.next(), signal);
    }
    this.#outage.clear();
  }

  /** Lists when that is needed; returns why it could not. */
  async #list(signal: AbortSignal): Promise<Fault | undefined> {
    if (!this.#mustList) return undefined;
    try {
      this.#take(await listSubnets(this.#options.client, this.#options.layout, signal));
      return undefined;
    } catch (error) {
      return toFault(error, "ETCD_REQUEST", "etcd list: ");
    }
  }

  #take(listing: Listing): void {
    const { client, log } = this.#options;
    const again = this.#listed;
    const uncertain = again && (this.#hadTrouble() || listing.revision < this.#revision);
    if (again) {
      client.stats.relists += 1;
      log.info("the leases were listed anew", { leases: listing.leases.length, revision: listing.revision });
    }
    this.#junk.reset(listing.bad);
    const present = new Set([...listing.leases, ...listing.bad].map((entry) => entry.key));
    const absent = [...this.#keys].filter((key) => !present.has(key));
    this.#held.clear();
    if (uncertain && absent.length > 0) this.#held.hold(absent);
    else for (const key of absent) this.#keys.delete(key);
    for (const lease of listing.leases) this.#keys.add(lease.key);
    this.#revision = listing.revision;
    this.#clusterId = listing.clusterId;
    this.#listed = true;
    this.#mustList = false;
    this.#tell({
      type: "snapshot",
      leases: listing.leases,
      revision: listing.revision,
      // What is held back is not proven gone either.
      unreadable: [...listing.bad.map((entry) => entry.key), ...(uncertain ? absent : [])],
    });
    if (again) this.#options.onGap();
  }

  /** Watches until the watch ends; returns the fault it ended with, if it was one. */
  async #follow(signal: AbortSignal): Promise<Fault | undefined> {
    const { client, layout } = this.#options;
    this.#watch = new AbortController();
    const both = AbortSignal.any([signal, this.#watch.signal]);
    if (this.#mustList) return undefined;
    if (this.#watched) client.stats.reconnects += 1;
    let settle: ReturnType<typeof setTimeout> | undefined;
    const end = await runWatch(
      client,
      { key: layout.subnetsFrom, rangeEnd: layout.subnetsTo, from: this.#revision + 1 },
      {
        created: (facts) => {
          this.#live = true;
          settle = setTimeout(() => this.#settled(), SETTLED_MS);
          void this.#checkStore(facts, both);
          if (this.#watched) this.#options.onGap();
          this.#watched = true;
        },
        events: (events, revision) => {
          this.#revision = Math.max(this.#revision, revision);
          this.#apply(events);
        },
        progress: (revision) => {
          this.#revision = Math.max(this.#revision, revision);
        },
      },
      both,
    );
    this.#live = false;
    clearTimeout(settle);
    if (end.end === "compacted") this.#mustList = true;
    return end.end === "failed" ? end.fault : undefined;
  }

  #settled(): void {
    this.#outage.clear();
    this.#backoff.reset();
  }

  /** Finds out whether this is still the store that was listed: same cluster, and revisions that only grow. */
  async #checkStore(facts: { revision: number; clusterId: string }, signal: AbortSignal): Promise<void> {
    const { client, layout, log } = this.#options;
    if (facts.clusterId !== this.#clusterId) {
      log.warn("etcd is another cluster than before: the leases are listed anew");
      return this.relist();
    }
    if (facts.revision >= this.#revision) return;
    try {
      // The member may only lag behind: a linearizable read tells.
      const { header } = await client.call("range", { key: layout.subnetsFrom, count_only: true }, signal);
      if (Number(header.revision) >= this.#revision) return;
      log.warn("etcd's revision went back (restored or wiped): the leases are listed anew", {
        known: this.#revision,
        revision: Number(header.revision),
      });
      this.relist();
    } catch {
      // The watch fails as well, or the next one asks again.
    }
  }

  #apply(events: readonly WatchEvent[]): void {
    const { client, layout, onEvent } = this.#options;
    client.stats.watchEvents += events.length;
    const puts: StoredLease[] = [];
    const deletes: string[] = [];
    const told = () => {
      if (puts.length === 0 && deletes.length === 0) return;
      this.#tell({
        type: "changes",
        puts: puts.splice(0),
        deletes: deletes.splice(0),
        revision: this.#revision,
      });
    };
    for (const { type, kv } of events) {
      if (type === "delete") {
        const key = layout.nameOf(kv.key);
        this.#junk.forget(key);
        // In the order of the store: an update applies its deletes first.
        if (puts.length > 0) told();
        if (this.#hadTrouble() && this.#keys.has(key)) this.#held.hold([key]);
        else if (this.#keys.delete(key)) deletes.push(key);
        onEvent(key, "deleted");
        continue;
      }
      const entry = decodeStored(layout, kv);
      this.#held.release(entry.key);
      if (isBad(entry)) {
        this.#junk.note(entry);
      } else {
        this.#junk.forget(entry.key);
        this.#keys.add(entry.key);
        puts.push(entry);
      }
      onEvent(entry.key, entry.modRevision);
    }
    told();
  }

  #hadTrouble(): boolean {
    const quiet = this.#options.client.quietMs;
    return quiet !== undefined && quiet < RECENT_TROUBLE_MS;
  }

  #tell(update: PeerUpdate): void {
    this.#pending.add(update);
    this.#wake?.();
  }
}
