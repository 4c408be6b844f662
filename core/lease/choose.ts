import type { Fault } from "../observe/fault.ts";
import type { Finding } from "../observe/finding.ts";
import { chooseSubnets, type Exhaustion, type FreedSubnet } from "./allocate.ts";
import { clashFault, exhaustedFault } from "./choice-text.ts";
import { type Claim, type Claims, weighClaims } from "./claims.ts";
import { type BadEntry, isReservation, type StoredLease } from "./entry.ts";
import { relate, sharesAddress } from "./identity.ts";
import { encodeKey } from "./key.ts";
import type { LeaseAttrs, Subnets } from "./lease.ts";
import { keepPrevious } from "./previous.ts";
import type { SubnetRanges } from "./store.ts";

/** All that decides which lease a node gets. */
export interface ChoiceRequest {
  /** The complete list of the store. */
  readonly leases: readonly StoredLease[];
  /** Entries that could not be read; where the key names a subnet, that subnet is not given out. */
  readonly bad?: readonly BadEntry[];
  /** What we would write: node id, boot id and addresses say who we are. */
  readonly self: LeaseAttrs;
  readonly ranges: SubnetRanges;
  /** The subnets of the last run. */
  readonly previous?: Subnets;
  readonly recentlyFreed?: readonly FreedSubnet[];
  /** Uniform in [0, 1); default `Math.random`. */
  readonly random?: () => number;
}

/** What to write. */
export type ChoicePlan =
  /**
   * Rewrite this key with our attributes, comparing its mod revision. Its etcd lease stays when it is alive; a
   * reservation (`isReservation(lease)`) must stay without one.
   */
  | {
      readonly kind: "reuse";
      readonly lease: StoredLease;
      readonly origin: "node-id" | "public-ip" | "reservation";
    }
  /** Create this key on version 0, under a newly granted etcd lease. */
  | {
      readonly kind: "create";
      readonly key: string;
      readonly subnets: Subnets;
      readonly origin: "previous" | "fresh";
    }
  /** Write nothing: another node has our address. */
  | { readonly kind: "clash"; readonly holder: StoredLease; readonly fault: Fault }
  /** Write nothing: no subnet is left. */
  | { readonly kind: "exhausted"; readonly exhausted: Exhaustion; readonly fault: Fault };

/** The decision of one try to acquire. A lost comparison means: list again and choose again. */
export interface Choice {
  readonly plan: ChoicePlan;
  /**
   * Own keys that are in the way or out of date. Delete them comparing their mod revision, before (or in one
   * transaction with) the plan's own write; with a `create` plan the new subnet may overlap them.
   */
  readonly remove: readonly StoredLease[];
  /** What the operator should know. */
  readonly notes: readonly Finding[];
}

/**
 * Decides which lease this node takes: its own by node id, by public IP, a reservation; else the subnet of its last
 * run; else a fresh one. Pure: same input and random numbers, same choice.
 */
export function chooseLease(request: ChoiceRequest): Choice {
  const { leases, self } = request;
  const holder = findClash(leases, self);
  if (holder)
    return { plan: { kind: "clash", holder, fault: clashFault(holder, self) }, remove: [], notes: [] };
  const claims = weighClaims(request);
  return claims.best ? reuse(claims.best, claims) : create(request, claims);
}

/**
 * The lease of another node that carries our public address, undefined when there is none that matters. Of two nodes
 * that got their keys at the same moment the one whose key was created first stays; so this is also the check to
 * make after a key was created (with the own entry as it stands in `leases`).
 */
export function findClash(leases: readonly StoredLease[], self: LeaseAttrs): StoredLease | undefined {
  let holder: StoredLease | undefined;
  let ownSince = Number.POSITIVE_INFINITY;
  for (const lease of leases) {
    const relation = relate(lease.attrs, self);
    if (relation === "clash" && !(holder && holder.createRevision <= lease.createRevision)) holder = lease;
    if (relation === "node-id" && sharesAddress(lease.attrs, self)) {
      ownSince = Math.min(ownSince, lease.createRevision);
    }
  }
  return holder && holder.createRevision < ownSince ? holder : undefined;
}

function reuse(best: Claim, { claims, notes }: Claims): Choice {
  const { lease, relation } = best;
  const origin = isReservation(lease) ? "reservation" : relation === "node-id" ? "node-id" : "public-ip";
  const remove = claims.filter((claim) => claim !== best && claim.relation === "node-id" && claim.removable);
  return { plan: { kind: "reuse", lease, origin }, remove: remove.map((claim) => claim.lease), notes };
}

function create(request: ChoiceRequest, { claims, notes: claimNotes }: Claims): Choice {
  const { leases, bad = [], ranges } = request;
  const remove = claims.filter((claim) => claim.removable).map((claim) => claim.lease);
  const removed = new Set<StoredLease | BadEntry>(remove);
  const others = [...leases, ...bad].filter((entry) => !removed.has(entry));
  const kept = keepPrevious(request.previous ?? remove[0]?.subnets ?? {}, ranges, others);
  const notes = [...claimNotes, ...(request.previous ? kept.notes : [])];
  const missing: SubnetRanges = {
    ...(ranges.ipv4 && !kept.subnets.ipv4 && { ipv4: ranges.ipv4 }),
    ...(ranges.ipv6 && !kept.subnets.ipv6 && { ipv6: ranges.ipv6 }),
  };
  const allocation = chooseSubnets({
    ranges: missing,
    taken: others.flatMap((entry) => (entry.subnets ? [entry.subnets] : [])),
    recentlyFreed: request.recentlyFreed ?? [],
    random: request.random ?? Math.random,
  });
  if ("exhausted" in allocation) {
    const { exhausted } = allocation;
    const fault = exhaustedFault(exhausted, { leases, bad });
    return { plan: { kind: "exhausted", exhausted, fault }, remove: [], notes };
  }
  const subnets: Subnets = { ...kept.subnets, ...allocation.subnets };
  const origin = Object.keys(kept.subnets).length > 0 ? "previous" : "fresh";
  return { plan: { kind: "create", key: encodeKey(subnets), subnets, origin }, remove, notes };
}
