import type { Prefix } from "../net/prefix.ts";
import { Pace } from "../retry/pace.ts";
import { isLegal } from "./allocate.ts";
import { prefixesOf } from "./key.ts";
import type { Lease } from "./lease.ts";
import { OverlapIndex } from "./overlap-index.ts";
import { compareWithOwn, type OwnLease, prepareOwn, type RejectedPeer } from "./peer-entry.ts";
import type { PeerUpdate, SubnetRanges } from "./store.ts";

/** What an update did to the peers that are routed to. Each key is in one list at most. */
export interface PeerDelta {
  readonly added: readonly Lease[];
  /** Attributes (or anything else but the revision) differ. */
  readonly changed: readonly { readonly before: Lease; readonly after: Lease }[];
  readonly removed: readonly Lease[];
  /** Newly rejected, or for another reason than before. */
  readonly rejected: readonly RejectedPeer[];
  /** Keys that were rejected and are not any more. */
  readonly readmitted: readonly string[];
}

interface Entry {
  lease: Lease;
  readonly prefixes: readonly Prefix[];
  /** Whether it is routed to. */
  accepted: boolean;
  rejection: RejectedPeer | undefined;
}

/** How an entry stood before an update, by key. */
interface Before {
  readonly lease: Lease | undefined;
  readonly rejection: RejectedPeer | undefined;
}

/**
 * The other nodes as this node routes to them. A pure function of the leases in the store and the own lease: the
 * order in which updates arrive does not matter. Of leases that overlap each other the legal one counts before one
 * that does not fit the network config (so that a stray `10.0.0.0-8` cannot empty the table), then the newer.
 */
export class PeerTable {
  readonly #entries = new Map<string, Entry>();
  readonly #index = new OverlapIndex<Entry>();
  readonly #ranges: SubnetRanges | undefined;
  #own: OwnLease | undefined;
  #size = 0;

  constructor(options: { own?: Lease; ranges?: SubnetRanges } = {}) {
    this.#own = options.own && prepareOwn(options.own);
    this.#ranges = options.ranges;
  }

  /** Number of peers routed to. */
  get size(): number {
    return this.#size;
  }

  /** The peer of that key, undefined when unknown, rejected or ourselves. */
  get(key: string): Lease | undefined {
    const entry = this.#entries.get(key);
    return entry?.accepted ? entry.lease : undefined;
  }

  /** All peers routed to. */
  list(): readonly Lease[] {
    return [...this.#entries.values()].filter((entry) => entry.accepted).map((entry) => entry.lease);
  }

  /** All leases not routed to, ourselves left out. */
  rejected(): readonly RejectedPeer[] {
    return [...this.#entries.values()].flatMap((entry) => entry.rejection ?? []);
  }

  /** Takes in an update of the store. */
  update(update: PeerUpdate): PeerDelta {
    return update.type === "snapshot"
      ? this.reset(update.leases, update.unreadable)
      : this.apply(update.puts, update.deletes);
  }

  /**
   * {@link update} that lets the event loop have its turn in between, for thousands of leases. Nobody may change the
   * table until it is done; what is read meanwhile may be neither the old nor the new state.
   */
  async updateInTurns(update: PeerUpdate): Promise<PeerDelta> {
    const steps =
      update.type === "snapshot"
        ? this.#apply(update.leases, this.#missingFrom(update.leases, update.unreadable))
        : this.#apply(update.puts, update.deletes);
    const pace = new Pace();
    for (;;) {
      const step = steps.next();
      if (step.done) return step.value;
      if (pace.isDue()) await pace.rest();
    }
  }

  /** Takes in a complete list: what it lacks is gone, save for the keys that exist but cannot be read. */
  reset(leases: readonly Lease[], unreadable: readonly string[] = []): PeerDelta {
    return this.apply(leases, this.#missingFrom(leases, unreadable));
  }

  /** Takes in changes: first the deletes, then the puts; of several puts of one key the last counts. */
  apply(puts: readonly Lease[], deletes: readonly string[]): PeerDelta {
    return finish(this.#apply(puts, deletes));
  }

  /** Changes the own lease (another subnet, another address) and judges all leases anew. */
  setOwn(own: Lease | undefined): PeerDelta {
    this.#own = own && prepareOwn(own);
    const before = new Map<string, Before>();
    const dirty = new Set<Entry>();
    for (const entry of this.#entries.values()) this.#admit(entry, before, dirty);
    finish(this.#settle(dirty, before));
    return finish(this.#compare(before));
  }

  #missingFrom(leases: readonly Lease[], unreadable: readonly string[] = []): readonly string[] {
    if (this.#entries.size === 0) return [];
    const present = new Set(unreadable);
    for (const lease of leases) present.add(lease.key);
    return [...this.#entries.keys()].filter((key) => !present.has(key));
  }

  /** Stops after every few entries, so that the caller may pause there. */
  *#apply(puts: readonly Lease[], deletes: readonly string[]): Steps<PeerDelta> {
    const before = new Map<string, Before>();
    const dirty = new Set<Entry>();
    let done = 0;
    for (const key of deletes) {
      this.#forget(key, before, dirty);
      if (++done % STEP === 0) yield;
    }
    for (const lease of puts) {
      this.#put(lease, before, dirty);
      if (++done % STEP === 0) yield;
    }
    yield* this.#settle(dirty, before);
    return yield* this.#compare(before);
  }

  #put(lease: Lease, before: Map<string, Before>, dirty: Set<Entry>): void {
    let entry = this.#entries.get(lease.key);
    if (entry && !Bun.deepEquals(entry.lease.subnets, lease.subnets)) {
      this.#forget(lease.key, before, dirty);
      entry = undefined;
    }
    remember(before, lease.key, entry);
    if (entry) entry.lease = lease;
    else {
      entry = { lease, prefixes: prefixesOf(lease.subnets), accepted: false, rejection: undefined };
      this.#entries.set(lease.key, entry);
    }
    this.#admit(entry, before, dirty);
  }

  #forget(key: string, before: Map<string, Before>, dirty: Set<Entry>): void {
    const entry = this.#entries.get(key);
    if (!entry) return;
    remember(before, key, entry);
    this.#withdraw(entry, dirty);
    this.#judge(entry, undefined, false);
    this.#entries.delete(key);
  }

  /** Compares an entry with the own lease: lets it compete with the others, or shuts it out. */
  #admit(entry: Entry, before: Map<string, Before>, dirty: Set<Entry>): void {
    const verdict = this.#own && compareWithOwn(entry.lease, entry.prefixes, this.#own);
    if (!this.#own || verdict === undefined) {
      this.#index.add(entry);
      dirty.add(entry);
      return;
    }
    remember(before, entry.lease.key, entry);
    this.#withdraw(entry, dirty);
    const rejection = { lease: entry.lease, by: this.#own.lease };
    this.#judge(entry, verdict === "own-key" ? undefined : { ...rejection, reason: verdict }, false);
  }

  /** Takes an entry out of the competition; those it overlapped are to be judged anew. */
  #withdraw(entry: Entry, dirty: Set<Entry>): void {
    if (!this.#index.has(entry)) return;
    for (const rival of this.#index.overlapping(entry)) dirty.add(rival);
    this.#index.remove(entry);
  }

  /** Judges the entries and all that hang together with them through overlaps. */
  *#settle(dirty: ReadonlySet<Entry>, before: Map<string, Before>): Steps<void> {
    const settled = new Set<Entry>();
    let done = 0;
    for (const entry of dirty) {
      if (++done % STEP === 0) yield;
      if (settled.has(entry) || !this.#index.has(entry)) continue;
      const group = this.#groupOf(entry);
      for (const member of group) {
        remember(before, member.lease.key, member);
        if (group.length > 1) settled.add(member);
      }
      if (group.length > 1) this.#settleGroup(group);
      else this.#judge(entry, undefined, true);
    }
  }

  #settleGroup(group: readonly Entry[]): void {
    const byWeight = group
      .map((entry) => ({
        entry,
        legal: !this.#ranges || isLegal(entry.lease.subnets, this.#ranges) === undefined,
      }))
      .sort((a, b) => Number(b.legal) - Number(a.legal) || compareLeases(a.entry.lease, b.entry.lease));
    const accepted = new Set<Entry>();
    for (const { entry } of byWeight) {
      const winners = [...this.#index.overlapping(entry).intersection(accepted)].map(
        (winner) => winner.lease,
      );
      const [by] = winners.sort(compareLeases);
      if (by) this.#judge(entry, { lease: entry.lease, reason: "overlap", by }, false);
      else {
        accepted.add(entry);
        this.#judge(entry, undefined, true);
      }
    }
  }

  #groupOf(entry: Entry): readonly Entry[] {
    const direct = this.#index.overlapping(entry);
    if (direct.size === 0) return [entry];
    const group = new Set([entry, ...direct]);
    // A set yields what is added while it is walked.
    for (const member of group) for (const rival of this.#index.overlapping(member)) group.add(rival);
    return [...group];
  }

  #judge(entry: Entry, rejection: RejectedPeer | undefined, accepted: boolean): void {
    this.#size += Number(accepted) - Number(entry.accepted);
    entry.accepted = accepted;
    entry.rejection = rejection;
  }

  *#compare(before: ReadonlyMap<string, Before>): Steps<PeerDelta> {
    const added: Lease[] = [];
    const changed: { before: Lease; after: Lease }[] = [];
    const removed: Lease[] = [];
    const rejected: RejectedPeer[] = [];
    const readmitted: string[] = [];
    let done = 0;
    for (const [key, was] of before) {
      if (++done % STEP === 0) yield;
      const after = this.get(key);
      if (!was.lease && after) added.push(after);
      if (was.lease && !after) removed.push(was.lease);
      if (was.lease && after && !isSameLease(was.lease, after)) changed.push({ before: was.lease, after });
      const rejection = this.#entries.get(key)?.rejection;
      if (rejection && !isSameRejection(rejection, was.rejection)) rejected.push(rejection);
      if (!rejection && was.rejection) readmitted.push(key);
    }
    return { added, changed, removed, rejected, readmitted };
  }
}

/** Entries between two stops of {@link Steps}: some hundred microseconds of work. */
const STEP = 100;

/** Work that stops now and then. */
type Steps<Result> = Generator<undefined, Result, undefined>;

/** Does all steps at once. */
function finish<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

function remember(before: Map<string, Before>, key: string, entry: Entry | undefined): void {
  if (before.has(key)) return;
  before.set(key, { lease: entry?.accepted ? entry.lease : undefined, rejection: entry?.rejection });
}

/** The newer lease first; the key decides where the store has no revisions. */
function compareLeases(a: Lease, b: Lease): number {
  return (b.modRevision ?? 0) - (a.modRevision ?? 0) || (a.key < b.key ? -1 : 1);
}

/** Equal in all that matters; being written anew with the same content is no change. */
function isSameLease(a: Lease, b: Lease): boolean {
  return a === b || (Bun.deepEquals(a.attrs, b.attrs) && Bun.deepEquals(a.subnets, b.subnets));
}

function isSameRejection(a: RejectedPeer, b: RejectedPeer | undefined): boolean {
  return b !== undefined && a.reason === b.reason && a.by.key === b.by.key;
}
