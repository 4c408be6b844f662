import { type BadEntry, isBad, isReservation, type StoredLease } from "./entry.ts";
import { relate, sharesAddress } from "./identity.ts";
import type { Lease, LeaseAttrs } from "./lease.ts";
import { overlapsAny } from "./overlap.ts";
import { encodeValue } from "./value.ts";

/** What was seen at the own key, as far as it matters. */
export interface OwnKeyView {
  /** The own lease: `attrs` are the ones we want to stand in the store, `modRevision` is our last known write. */
  readonly lease: Lease;
  /** Attributes of writes of ours whose outcome is not known (a time-out): found in the store they are ours. */
  readonly doubtful?: readonly LeaseAttrs[];
  /** What stands at the own key now, undefined when the key is gone. */
  readonly found: StoredLease | BadEntry | undefined;
  /** All entries of the store, to see who else has our subnet; only read when the key is gone. */
  readonly entries: readonly (StoredLease | BadEntry)[];
}

/** What to do about the own key. */
export type LossDecision =
  /** It is ours as it should be: take over its revision and etcd lease. */
  | { readonly action: "keep"; readonly found: StoredLease; readonly reservation: boolean }
  /** It is ours, but another hand changed the value: write our attributes (compare `found.modRevision`), keeping the etcd lease. */
  | { readonly action: "rewrite"; readonly found: StoredLease; readonly reservation: boolean }
  /**
   * It is gone and free: create it again (on version 0) with a new etcd lease. The config in force allows it, as it did
   * when the lease was acquired: one that does not waits for a restart.
   */
  | { readonly action: "retake" }
  /** Somebody else has it: report, keep forwarding, write nothing until it is free again. */
  | { readonly action: "conflict"; readonly holder: Lease; readonly reason: string };

/**
 * Decides what a look at the own key means. Never ends in two nodes overwriting each other: only a value that is
 * provably ours, or that nobody with an id wrote, is ever written over.
 */
export function decideLoss(view: OwnKeyView): LossDecision {
  return view.found === undefined ? decideGone(view) : decideFound(view, view.found);
}

function decideFound(view: OwnKeyView, found: StoredLease | BadEntry): LossDecision {
  const own = view.lease;
  if (isBad(found)) return { action: "conflict", holder: withoutOwner(found), reason: found.reason };
  const reservation = isReservation(found);
  const { attrs } = found;
  switch (relate(attrs, own.attrs)) {
    case "public-ip":
    case "new-interface":
      return { action: "rewrite", found, reservation };
    case "clash":
      return conflict(found, "another node with our public address wrote it");
    case "other":
      return conflict(found, "another node wrote it");
    case "node-id":
      if (!sharesAddress(attrs, own.attrs)) {
        return conflict(
          found,
          "it carries our node id but another address: a cloned disk, or this node runs twice",
        );
      }
      if (attrs.bootId !== undefined && attrs.bootId !== own.attrs.bootId) {
        return conflict(found, "it carries our node id but another boot: a cloned disk with our address");
      }
      if (isSame(attrs, own.attrs)) return { action: "keep", found, reservation };
      if (isOwnWrite(view, found)) return { action: "rewrite", found, reservation };
      return conflict(found, "a second daemon on this machine wrote it");
  }
}

/** Whether an outdated value is our own: written by us, or by hand (which leaves out the boot). */
function isOwnWrite({ lease, doubtful = [] }: OwnKeyView, found: StoredLease): boolean {
  return (
    found.attrs.bootId === undefined ||
    found.modRevision === lease.modRevision ||
    doubtful.some((attrs) => isSame(attrs, found.attrs))
  );
}

function isSame(a: LeaseAttrs, b: LeaseAttrs): boolean {
  return encodeValue(a) === encodeValue(b);
}

function decideGone({ lease, entries }: OwnKeyView): LossDecision {
  for (const entry of entries) {
    if (entry.key === lease.key || entry.subnets === undefined) continue;
    if (!overlapsAny(lease.subnets, entry.subnets)) continue;
    return isBad(entry)
      ? { action: "conflict", holder: withoutOwner(entry), reason: entry.reason }
      : conflict(entry, "its subnet overlaps ours");
  }
  return { action: "retake" };
}

function conflict(holder: StoredLease, reason: string): LossDecision {
  return { action: "conflict", holder, reason };
}

/** A lease that stands for a key whose value nobody can read. */
function withoutOwner(entry: BadEntry): Lease {
  return { key: entry.key, subnets: entry.subnets ?? {}, attrs: { backendType: "" } };
}
