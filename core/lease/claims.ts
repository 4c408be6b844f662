import type { Finding } from "../observe/finding.ts";
import { isLegal } from "./allocate.ts";
import { noteContested, noteSharedId, noteUnusedReservation } from "./choice-text.ts";
import { isReservation, type StoredLease } from "./entry.ts";
import { type Relation, relate, sharesAddress } from "./identity.ts";
import type { LeaseAttrs, Subnets } from "./lease.ts";
import type { SubnetRanges } from "./store.ts";

/** A lease in the store that is this node's own. */
export interface Claim {
  readonly lease: StoredLease;
  readonly relation: Relation;
  /** Why it cannot be used, undefined when it can. */
  readonly reason?: string;
  /** Whether it may be deleted when it is not used: surely ours, out of date, and no reservation. */
  readonly removable: boolean;
}

/** The own leases of a node. */
export interface Claims {
  readonly claims: readonly Claim[];
  /** The one to use, undefined when none can be. */
  readonly best: Claim | undefined;
  readonly notes: readonly Finding[];
}

/** Where own leases come from and what they must fit. */
export interface ClaimScope {
  readonly leases: readonly StoredLease[];
  readonly self: LeaseAttrs;
  readonly ranges: SubnetRanges;
  readonly previous?: Subnets;
}

/**
 * Finds this node's own leases and the best of them: the subnet of the last run (pods have its addresses), then a
 * reservation, then a key with our id and address, then one with our id, then one with our address.
 */
export function weighClaims(scope: ClaimScope): Claims {
  const { leases, self } = scope;
  const notes: Finding[] = [];
  const claims: Claim[] = [];
  for (const lease of leases) {
    const relation = relate(lease.attrs, self);
    if (relation === "other" || relation === "clash") continue;
    claims.push(weigh(lease, relation, scope, notes));
  }
  const usable = claims.filter((claim) => claim.reason === undefined);
  usable.sort((a, b) => rank(a, scope) - rank(b, scope) || (a.lease.key < b.lease.key ? -1 : 1));
  const best = usable[0];
  for (const claim of claims) {
    if (claim === best) continue;
    if (isReservation(claim.lease)) {
      const reason = claim.reason ?? `this node keeps "${best?.lease.key}"`;
      notes.push(noteUnusedReservation(claim.lease.key, reason));
    } else if (claim.relation === "node-id" && !claim.removable) notes.push(noteSharedId(claim.lease));
  }
  return { claims, best, notes };
}

function weigh(lease: StoredLease, relation: Relation, scope: ClaimScope, notes: Finding[]): Claim {
  const illegal = isLegal(lease.subnets, scope.ranges);
  const rival = illegal === undefined ? findRival(lease, scope) : undefined;
  if (rival && rival.createRevision > lease.createRevision) notes.push(noteContested(lease.subnets, rival));
  const lost = rival !== undefined && rival.createRevision < lease.createRevision;
  const reason = illegal ?? (lost ? `"${rival.key}" had the subnet before` : undefined);
  const removable =
    !isReservation(lease) &&
    (relation === "node-id"
      ? illegal !== undefined || isSurelyOurs(lease.attrs, scope.self)
      : illegal !== undefined);
  return { lease, relation, removable, ...(reason !== undefined && { reason }) };
}

/**
 * The first-created legal lease of somebody else with one of our subnets (a dual-stack sibling of the key, say).
 * Legal subnets of one family all have one length, so overlapping means equal.
 */
function findRival(lease: StoredLease, { leases, self, ranges }: ClaimScope): StoredLease | undefined {
  const { ipv4, ipv6 } = lease.subnets;
  let rival: StoredLease | undefined;
  for (const other of leases) {
    const { subnets } = other;
    const same =
      (ipv4 !== undefined && subnets.ipv4 === ipv4) || (ipv6 !== undefined && subnets.ipv6 === ipv6);
    if (!same || other === lease || isLegal(subnets, ranges) !== undefined) continue;
    const relation = relate(other.attrs, self);
    if (relation !== "other" && relation !== "clash") continue;
    if (!rival || other.createRevision < rival.createRevision) rival = other;
  }
  return rival;
}

/** Our id alone may be a clone's; with our address or written in this boot it is ours. */
function isSurelyOurs(attrs: LeaseAttrs, self: LeaseAttrs): boolean {
  return sharesAddress(attrs, self) || (attrs.bootId !== undefined && attrs.bootId === self.bootId);
}

function rank({ lease, relation }: Claim, { self, previous }: ClaimScope): number {
  if (previous && isPrevious(lease.subnets, previous)) return 0;
  if (isReservation(lease)) return 1;
  if (relation !== "node-id") return 4;
  return sharesAddress(lease.attrs, self) ? 2 : 3;
}

/** A claim has exactly the families we run; the last run may have had more. */
function isPrevious(subnets: Subnets, previous: Subnets): boolean {
  return (
    (subnets.ipv4 === undefined || subnets.ipv4 === previous.ipv4) &&
    (subnets.ipv6 === undefined || subnets.ipv6 === previous.ipv6)
  );
}
