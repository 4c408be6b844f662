import { Fault } from "../../observe/fault.ts";
import type { Log } from "../../observe/log.ts";
import { type BadEntry, isBad, isReservation, type StoredLease } from "../entry.ts";
import { describeOwner } from "../identity.ts";
import type { Lease, LeaseAttrs } from "../lease.ts";
import { decideLoss } from "../loss.ts";
import { overlapsAny } from "../overlap.ts";
import { encodeValue } from "../value.ts";
import type { EtcdClient } from "./client.ts";
import { type Grant, grantLease, renewLease, revokeLease } from "./grant.ts";
import type { Layout } from "./layout.ts";
import { listSubnets } from "./list.ts";
import { type OwnLease, toLease } from "./own-lease.ts";
import { SubnetWriter } from "./write.ts";

/** How the own key stands after a look at it. */
export type Standing =
  | { readonly kind: "held" }
  /** Somebody else has it. */
  | { readonly kind: "conflict"; readonly holder: Lease; readonly reason: string };

export interface OwnKeyOptions {
  readonly client: EtcdClient;
  readonly layout: Layout;
  readonly log: Log;
  /** Time to live asked for, ms. */
  readonly ttlMs: number;
  /** Told when the key is gone although nobody saw it being deleted: other keys may be gone like it. */
  readonly onVanished: () => void;
}

/** Lost comparisons in a row after which a write waits for the next look. */
const MOST_RACES = 5;

/**
 * The own key in etcd: looking at it, taking it back, rewriting and releasing it. One action at a time: what one read
 * stays true until it has written. Every action reads before it writes, and every write compares.
 */
export class OwnKey {
  readonly #options: OwnKeyOptions;
  readonly #writer: SubnetWriter;
  #own: OwnLease;
  #standing: Standing = { kind: "held" };
  /** A rewrite whose answer was lost: should these attributes be found in the key, they are ours. */
  #unconfirmed: LeaseAttrs | undefined;
  #deletionSeen = false;
  #tail: Promise<unknown> = Promise.resolve();

  constructor(options: OwnKeyOptions, own: OwnLease) {
    this.#options = options;
    this.#writer = new SubnetWriter(options.client, options.layout);
    this.#own = own;
  }

  /** The lease as it stands, or stood before it was lost. */
  get own(): OwnLease {
    return this.#own;
  }

  get standing(): Standing {
    return this.#standing;
  }

  /** Takes note of an event of any subnet key; true when it calls for a {@link look}. */
  concerns(key: string, modRevision: number | "deleted"): boolean {
    if (key === this.#own.key) {
      if (modRevision === "deleted") this.#deletionSeen = true;
      return modRevision !== this.#own.modRevision;
    }
    return this.#standing.kind === "conflict" && this.#standing.holder.key === key;
  }

  /** Reads the key and does what it takes to hold it, short of writing over somebody else. */
  look(signal: AbortSignal): Promise<Standing> {
    return this.#exclusively(() => this.#look(signal));
  }

  /** Renews the etcd lease, then looks at the key, whatever came of it. Nothing to renew for a reservation. */
  renew(signal: AbortSignal): Promise<Standing> {
    return this.#exclusively(async () => {
      const { grant } = this.#own;
      const renewed = grant && (await renewLease(this.#options.client, grant.id, signal));
      if (renewed) {
        this.#options.client.stats.renewals += 1;
        this.#own = { ...this.#own, grant: renewed };
      }
      return this.#look(signal);
    });
  }

  /**
   * Rewrites the attributes.
   * @throws Fault `LEASE_CONFLICT` when the key is not ours, `ETCD_…` when etcd fails.
   */
  update(attrs: LeaseAttrs, signal: AbortSignal): Promise<void> {
    return this.#exclusively(async () => {
      for (let tries = 0; tries < MOST_RACES; tries += 1) {
        if (encodeValue(attrs) === encodeValue(this.#own.attrs)) return;
        this.#unconfirmed = attrs;
        const modRevision = await this.#writer.rewrite(this.#own, encodeValue(attrs), undefined, [], signal);
        if (modRevision !== undefined) {
          this.#unconfirmed = undefined;
          this.#own = { ...this.#own, attrs, modRevision };
          return;
        }
        if ((await this.#look(signal)).kind !== "held") break;
      }
      throw this.#conflictFault();
    });
  }

  /** Deletes the key if it is ours; a reservation stays. */
  release(signal: AbortSignal): Promise<void> {
    return this.#exclusively(async () => {
      const { grant, granted } = this.#own;
      if (!grant || this.#standing.kind !== "held") return;
      await this.#writer.remove(this.#own, signal);
      if (granted) await revokeLease(this.#options.client, grant.id, signal);
    });
  }

  async #look(signal: AbortSignal): Promise<Standing> {
    for (let tries = 0; tries < MOST_RACES; tries += 1) {
      const standing = await this.#settle(await this.#writer.read(this.#own.key, signal), signal);
      if (!standing) continue;
      this.#standing = standing;
      return standing;
    }
    throw new Fault("LEASE_RACE", `the key of the own lease ${this.#own.key} changes all the time`, {
      hint: "look for who writes it: etcdctl watch PREFIX/subnets/KEY",
    });
  }

  /** Acts on what was found at the key; undefined when a race was lost and the key must be read again. */
  async #settle(
    found: StoredLease | BadEntry | undefined,
    signal: AbortSignal,
  ): Promise<Standing | undefined> {
    if (found && !isBad(found)) this.#confirm(found);
    const own = this.#own;
    const held = this.#standing.kind === "held";
    if (held && found && !isBad(found) && found.modRevision === own.modRevision) return { kind: "held" };
    if (!found) this.#noteVanished();
    const listing = found ? undefined : await listSubnets(this.#options.client, this.#options.layout, signal);
    const entries = listing ? [...listing.leases, ...listing.bad] : [];
    const decision = decideLoss({ lease: toLease(own), found, entries });
    switch (decision.action) {
      case "keep":
        return this.#adopt(decision.found, signal);
      case "rewrite": {
        const modRevision = await this.#writer.rewrite(
          decision.found,
          encodeValue(own.attrs),
          undefined,
          [],
          signal,
        );
        if (modRevision === undefined) return undefined;
        this.#options.log.warn("the own lease was written by another hand and is set right", {
          key: own.key,
          written: describeOwner(decision.found.attrs),
        });
        return this.#adopt({ ...decision.found, modRevision }, signal);
      }
      case "retake":
        return this.#retake(listing?.revision ?? 0, signal);
      case "conflict":
        return { kind: "conflict", holder: decision.holder, reason: decision.reason };
    }
  }

  /** A rewrite whose answer was lost turns out to have been done. */
  #confirm(found: StoredLease): void {
    const attrs = this.#unconfirmed;
    if (!attrs || encodeValue(found.attrs) !== encodeValue(attrs)) return;
    this.#own = { ...this.#own, attrs, modRevision: found.modRevision };
    this.#unconfirmed = undefined;
  }

  #noteVanished(): void {
    if (!this.#deletionSeen && this.#standing.kind === "held") this.#options.onVanished();
    this.#deletionSeen = false;
  }

  /** The key is ours: takes over its revision and the etcd lease it hangs on. */
  async #adopt(found: StoredLease, signal: AbortSignal): Promise<Standing | undefined> {
    let { grant, granted } = this.#own;
    if (isReservation(found)) {
      if (grant) this.#options.log.info("the own lease has become a reservation", { key: found.key });
      grant = undefined;
      granted = false;
    } else if (grant?.id !== found.leaseId) {
      grant = await renewLease(this.#options.client, found.leaseId, signal);
      granted = false;
      // It ran out between the two reads, and the key with it.
      if (!grant) return undefined;
    }
    this.#own = { ...this.#own, modRevision: found.modRevision, grant, granted };
    return { kind: "held" };
  }

  async #retake(since: number, signal: AbortSignal): Promise<Standing | undefined> {
    const { client, log, ttlMs } = this.#options;
    const own = this.#own;
    const grant: Grant = await grantLease(client, ttlMs, signal);
    const result = await this.#writer.create(own.key, encodeValue(own.attrs), grant.id, since, [], signal);
    if (result.outcome === "created") {
      const rival = result.newer.find(
        (entry) => entry.key !== own.key && entry.subnets && overlapsAny(entry.subnets, own.subnets),
      );
      if (!rival) {
        this.#own = { ...own, modRevision: result.revision, grant, granted: true };
        log.info("the own lease was gone and is taken back", { key: own.key, revision: result.revision });
        return { kind: "held" };
      }
      // Created between our list and our key, so it came first.
      await this.#writer.remove({ key: own.key, modRevision: result.revision }, signal);
    }
    await revokeLease(client, grant.id, signal);
    return undefined;
  }

  #conflictFault(): Fault {
    const standing = this.#standing;
    const why =
      standing.kind === "conflict"
        ? `it belongs to ${describeOwner(standing.holder.attrs)} now: ${standing.reason}`
        : "another hand keeps writing it";
    return new Fault("LEASE_CONFLICT", `the own lease ${this.#own.key} cannot be rewritten: ${why}`, {
      hint: "see the finding LEASE_CONFLICT in flanneld status",
    });
  }

  #exclusively<T>(action: () => Promise<T>): Promise<T> {
    const result = this.#tail.then(action, action);
    this.#tail = result.catch(() => undefined);
    return result;
  }
}
