import { decodeKey } from "./key.ts";
import type { Lease, Subnets } from "./lease.ts";
import { decodeValue } from "./value.ts";

/** What the store knows of a key besides key and value. Revisions are below 2^53 in any real cluster. */
export interface EntryFacts {
  /** etcd `mod_revision`: the write to compare against. */
  readonly modRevision: number;
  /** etcd `create_revision`: unchanged while the key lives. */
  readonly createRevision: number;
  /** Number of writes since the key was created. */
  readonly version: number;
  /** Id of the etcd lease the key hangs on, decimal (64 bits do not fit a number); `0` when there is none. */
  readonly leaseId: string;
}

/** A lease as it stands in the store. */
export interface StoredLease extends Lease, EntryFacts {
  readonly modRevision: number;
}

/** A key under `subnets/` that is no usable lease. It is skipped, counted and logged once; never proof of removal. */
export interface BadEntry {
  readonly key: string;
  /** Why, one clause, e.g. `the value is not JSON`. */
  readonly reason: string;
  /** The subnets the key names, where only the value is bad: they are occupied all the same. */
  readonly subnets?: Subnets;
}

/** The id of "no etcd lease". */
const NO_LEASE = "0";

/**
 * One key and value of the store. `key` is what follows `<prefix>/subnets/`, unchanged (the raw key is what later
 * transactions must name). Never throws.
 */
export function decodeEntry(key: string, value: string, facts: EntryFacts): StoredLease | BadEntry {
  const subnets = decodeKey(key);
  if (!subnets) return { key, reason: "the key is not a subnet" };
  const attrs = decodeValue(value);
  if ("error" in attrs) return { key, reason: attrs.error, subnets };
  const { modRevision, createRevision, version, leaseId } = facts;
  return { key, subnets, attrs, modRevision, createRevision, version, leaseId };
}

/** Tells the two results of {@link decodeEntry} apart. */
export function isBad(entry: StoredLease | BadEntry): entry is BadEntry {
  return "reason" in entry;
}

/** Whether a key hangs on no etcd lease: a reservation, which never expires and must never be given a lease. */
export function isReservation(entry: Pick<EntryFacts, "leaseId">): boolean {
  return entry.leaseId === NO_LEASE;
}
