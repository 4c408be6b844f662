import { overlaps, type Prefix } from "../net/prefix.ts";
import { relate } from "./identity.ts";
import { prefixesOf } from "./key.ts";
import type { Lease } from "./lease.ts";

/**
 * Why a lease is not routed to:
 * - `own-node`: it carries our node id or, without an id, our address;
 * - `own-address`: another node claims our address;
 * - `own-subnet`: it overlaps our own subnet;
 * - `overlap`: it overlaps another lease that counts more.
 */
export type RejectionReason = "own-node" | "own-address" | "own-subnet" | "overlap";

/** A lease in the store that is not routed to. */
export interface RejectedPeer {
  readonly lease: Lease;
  readonly reason: RejectionReason;
  /** The lease it gives way to: our own, or the accepted one it overlaps. */
  readonly by: Lease;
}

/** The own lease as peers are compared with it. */
export interface OwnLease {
  readonly lease: Lease;
  readonly prefixes: readonly Prefix[];
}

/** Prepares the own lease for {@link compareWithOwn}. */
export function prepareOwn(lease: Lease): OwnLease {
  return { lease, prefixes: prefixesOf(lease.subnets) };
}

/** Why a lease is never routed to from this node, undefined when it may be; `own-key` is simply ourselves. */
export function compareWithOwn(
  lease: Lease,
  prefixes: readonly Prefix[],
  own: OwnLease,
): RejectionReason | "own-key" | undefined {
  if (lease.key === own.lease.key) return "own-key";
  if (prefixes.some((theirs) => own.prefixes.some((ours) => overlaps(theirs, ours)))) return "own-subnet";
  switch (relate(lease.attrs, own.lease.attrs)) {
    case "node-id":
    case "public-ip":
    case "new-interface":
      return "own-node";
    case "clash":
      return "own-address";
    case "other":
      return undefined;
  }
}
