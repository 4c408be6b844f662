import { Fault, toFault } from "../../observe/fault.ts";
import type { Health } from "../../observe/health.ts";
import type { Log } from "../../observe/log.ts";
import { Backoff, sleep } from "../../retry/backoff.ts";
import { clashFault } from "../choice-text.ts";
import { type ChoicePlan, chooseLease, findClash } from "../choose.ts";
import { type BadEntry, isBad, isReservation, type StoredLease } from "../entry.ts";
import { describeSubnets } from "../key.ts";
import type { Subnets } from "../lease.ts";
import { overlapsAny } from "../overlap.ts";
import type { HeldLease, LeaseOrigin, LeaseRequest } from "../store.ts";
import { encodeValue } from "../value.ts";
import type { EtcdClient } from "./client.ts";
import { type Grant, grantLease, renewLease, revokeLease } from "./grant.ts";
import type { Layout } from "./layout.ts";
import { type Listing, listSubnets } from "./list.ts";
import { Outage } from "./outage.ts";
import { type OwnLease, toLease } from "./own-lease.ts";
import { SubnetWriter } from "./write.ts";

export interface AcquireOptions {
  readonly client: EtcdClient;
  readonly layout: Layout;
  readonly log: Log;
  readonly health: Health;
  /** Time to live asked for, ms. */
  readonly ttlMs: number;
}

/** The own lease, and the list it was chosen from, which spares the watch its own. */
export interface Acquired {
  readonly own: OwnLease;
  readonly held: HeldLease;
  readonly listing: Listing;
}

/** Lost races after which something must be wrong: 500 nodes that start at once need far fewer. */
const MOST_TRIES = 100;

/**
 * Acquires the lease of this node: list, choose (core/lease/choose.ts), write what was chosen by compare-and-swap; a
 * lost race lists and chooses again after a random pause. Trouble with etcd is waited for and shows as a finding.
 */
export class Acquisition {
  readonly #options: AcquireOptions;
  readonly #request: LeaseRequest;
  readonly #signal: AbortSignal;
  readonly #writer: SubnetWriter;
  readonly #value: string;
  /** Granted for a key that could not be created yet; used for the next try. */
  #spare: Grant | undefined;
  /** Granted for a write whose outcome is unknown. */
  readonly #uncertain = new Set<string>();
  readonly #told = new Set<string>();

  constructor(options: AcquireOptions, request: LeaseRequest, signal: AbortSignal) {
    this.#options = options;
    this.#request = request;
    this.#signal = signal;
    this.#writer = new SubnetWriter(options.client, options.layout);
    this.#value = encodeValue(request.attrs);
  }

  /**
   * @throws Fault `LEASE_CLASH`, `LEASE_EXHAUSTED`, `LEASE_RACE` (far too many lost races) or, on abort,
   *   `LEASE_ABORTED`.
   */
  async run(): Promise<Acquired> {
    const outage = new Outage(this.#options.health, "acquiring the lease");
    const wait = new Backoff({ first: 200, max: 2_000 });
    const pause = new Backoff({ first: 20, max: 500 });
    try {
      for (let tries = 0; tries < MOST_TRIES; ) {
        if (this.#signal.aborted) throw new Fault("LEASE_ABORTED", "stopped while acquiring the lease");
        try {
          const acquired = await this.#try();
          outage.clear();
          wait.reset();
          if (acquired) return acquired;
          tries += 1;
          await sleep(pause.next(), this.#signal);
        } catch (error) {
          const fault = toFault(error, "LEASE_FAILED", "acquiring the lease: ");
          if (!fault.code.startsWith("ETCD_")) throw fault;
          if (this.#spare) this.#uncertain.add(this.#spare.id);
          this.#spare = undefined;
          if (!this.#signal.aborted) outage.raise(fault);
          await sleep(wait.next(), this.#signal);
        }
      }
      throw new Fault("LEASE_RACE", `no lease after ${MOST_TRIES} lost races for a subnet`, {
        hint: "look for something that keeps writing below the subnets key: etcdctl watch --prefix PREFIX/subnets/",
      });
    } finally {
      outage.clear();
      if (!this.#signal.aborted) await this.#revokeUnused();
    }
  }

  /** One try; undefined when a race was lost. */
  async #try(): Promise<Acquired | undefined> {
    const { client, layout, log } = this.#options;
    const { attrs, ranges, previous } = this.#request;
    const listing = await listSubnets(client, layout, this.#signal);
    const { plan, remove, notes } = chooseLease({
      leases: listing.leases,
      bad: listing.bad,
      self: attrs,
      ranges,
      ...(previous ? { previous } : {}),
    });
    for (const note of notes) {
      if (this.#told.has(note.text)) continue;
      this.#told.add(note.text);
      log.warn(`${note.title}: ${note.text}`, { code: note.code, fix: note.fix });
    }
    switch (plan.kind) {
      case "clash":
      case "exhausted":
        throw plan.fault;
      case "reuse":
        return this.#reuse(plan, remove, listing);
      case "create":
        return this.#create(plan, remove, listing);
    }
  }

  async #reuse(
    { lease, origin }: Extract<ChoicePlan, { kind: "reuse" }>,
    remove: readonly StoredLease[],
    listing: Listing,
  ): Promise<Acquired | undefined> {
    const { client, ttlMs } = this.#options;
    const reservation = isReservation(lease);
    let grant = reservation ? undefined : await renewLease(client, lease.leaseId, this.#signal);
    const renewed = grant?.ttlMs === Math.ceil(ttlMs / 1000) * 1000;
    // Another time to live than ours, or one that ran out this moment: the key moves to a lease of our own.
    const move = !reservation && !renewed;
    if (move) grant = await this.#grant();
    let modRevision: number | undefined = lease.modRevision;
    if (move || remove.length > 0 || encodeValue(lease.attrs) !== this.#value) {
      modRevision = await this.#writer.rewrite(
        lease,
        this.#value,
        move ? grant?.id : undefined,
        remove,
        this.#signal,
      );
    }
    if (modRevision === undefined) return undefined;
    return this.#finish(lease.key, lease.subnets, modRevision, grant, move, origin, listing);
  }

  async #create(
    { key, subnets, origin }: Extract<ChoicePlan, { kind: "create" }>,
    remove: readonly StoredLease[],
    listing: Listing,
  ): Promise<Acquired | undefined> {
    const grant = await this.#grant();
    const result = await this.#writer.create(
      key,
      this.#value,
      grant.id,
      listing.revision,
      remove,
      this.#signal,
    );
    if (result.outcome === "exists") return undefined;
    // Keys of other names may cover the same addresses (one family of two, another length), which no comparison of
    // this key shows. Of two such keys the one created first stays.
    const rivals = result.newer.filter((entry) => entry.key !== key);
    const rival = rivals.find((entry) => entry.subnets && overlapsAny(entry.subnets, subnets));
    const clash = this.#findClash(rivals, listing);
    if (rival ?? clash) await this.#writer.remove({ key, modRevision: result.revision }, this.#signal);
    if (clash) throw clashFault(clash, this.#request.attrs);
    if (rival) return undefined;
    return this.#finish(key, subnets, result.revision, grant, true, origin, listing);
  }

  /** Another node with our address that came before us, after the list. */
  #findClash(rivals: readonly (StoredLease | BadEntry)[], listing: Listing): StoredLease | undefined {
    const leases = rivals.filter((entry): entry is StoredLease => !isBad(entry));
    return leases.length === 0 ? undefined : findClash([...listing.leases, ...leases], this.#request.attrs);
  }

  #finish(
    key: string,
    subnets: Subnets,
    modRevision: number,
    grant: Grant | undefined,
    granted: boolean,
    origin: LeaseOrigin,
    listing: Listing,
  ): Acquired {
    if (this.#spare && this.#spare.id === grant?.id) this.#spare = undefined;
    this.#uncertain.delete(grant?.id ?? "");
    const { attrs } = this.#request;
    const own: OwnLease = { key, subnets, attrs, modRevision, grant, granted };
    this.#options.log.debug("lease acquired", {
      subnets: describeSubnets(subnets),
      origin,
      revision: modRevision,
    });
    return { own, held: { lease: toLease(own), origin, reservation: grant === undefined }, listing };
  }

  /** An etcd lease with most of its time left. */
  async #grant(): Promise<Grant> {
    const { client, ttlMs } = this.#options;
    const age = performance.now() - (this.#spare?.confirmed.monotonic ?? 0);
    if (this.#spare && age > this.#spare.ttlMs / 2) {
      this.#uncertain.add(this.#spare.id);
      this.#spare = undefined;
    }
    this.#spare ??= await grantLease(client, ttlMs, this.#signal);
    return this.#spare;
  }

  /** Best effort: what cannot be revoked runs out by itself. */
  async #revokeUnused(): Promise<void> {
    if (this.#spare) this.#uncertain.add(this.#spare.id);
    this.#spare = undefined;
    await Promise.all(
      [...this.#uncertain].map((id) => revokeLease(this.#options.client, id).catch(() => undefined)),
    );
  }
}
