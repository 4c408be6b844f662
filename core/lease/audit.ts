import { isLegal } from "./allocate.ts";
import { type BadEntry, isReservation, type StoredLease } from "./entry.ts";
import { describeOwner } from "./identity.ts";
import type { LeaseAttrs, Subnets } from "./lease.ts";
import { PeerTable } from "./peers.ts";
import type { SubnetRanges } from "./store.ts";

/** Remaining and granted time to live of the etcd lease that a key hangs on, seconds. */
export interface TimeLeft {
  readonly left: number;
  readonly granted: number;
}

/** Everything below `subnets/`, as an operator's command read it. */
export interface LeaseInventory {
  readonly leases: readonly StoredLease[];
  readonly bad: readonly BadEntry[];
  /** By id of the etcd lease; one that cannot be told is absent. */
  readonly times: ReadonlyMap<string, TimeLeft>;
}

/** Something that is wrong with an entry. */
export interface LeaseProblem {
  readonly code: "illegal" | "overlap" | "address-shared" | "id-shared" | "junk";
  readonly text: string;
}

/** One key below `subnets/`. */
export interface AuditedLease {
  readonly key: string;
  readonly kind: "lease" | "reservation" | "junk";
  readonly subnets: Subnets;
  /** Absent for junk. */
  readonly attrs?: LeaseAttrs;
  readonly modRevision?: number;
  /** Seconds since it was renewed last (etcd keeps no time of creation); absent for reservations. */
  readonly ageSeconds?: number;
  /** Seconds until it expires; absent for reservations. */
  readonly ttlSeconds?: number;
  readonly problems: readonly LeaseProblem[];
}

/** All entries in the order of their keys, with what is wrong with each. Pure. Without `ranges` legality is not judged. */
export function auditLeases(
  inventory: LeaseInventory,
  ranges: SubnetRanges | undefined,
): readonly AuditedLease[] {
  const { leases, bad, times } = inventory;
  const overlaps = findOverlaps(leases, ranges);
  const shared = findShared(leases);
  const audited = leases.map((lease): AuditedLease => {
    const reservation = isReservation(lease);
    const time = reservation ? undefined : times.get(lease.leaseId);
    const illegal = ranges && isLegal(lease.subnets, ranges);
    return {
      key: lease.key,
      kind: reservation ? "reservation" : "lease",
      subnets: lease.subnets,
      attrs: lease.attrs,
      modRevision: lease.modRevision,
      ...(time && { ageSeconds: Math.max(0, time.granted - time.left), ttlSeconds: Math.max(0, time.left) }),
      problems: [
        ...(illegal === undefined ? [] : [{ code: "illegal", text: illegal } as const]),
        ...(overlaps.get(lease.key) ?? []),
        ...(shared.get(lease.key) ?? []),
      ],
    };
  });
  const junk = bad.map(
    ({ key, reason, subnets }): AuditedLease => ({
      key,
      kind: "junk",
      subnets: subnets ?? {},
      problems: [{ code: "junk", text: reason }],
    }),
  );
  return [...audited, ...junk].sort(compareKeys);
}

/** By address, so that 10.244.9.0 comes before 10.244.10.0. */
function compareKeys(a: AuditedLease, b: AuditedLease): number {
  return a.key.localeCompare(b.key, "en", { numeric: true });
}

/** What nodes do not route to since another lease counts more. */
function findOverlaps(
  leases: readonly StoredLease[],
  ranges: SubnetRanges | undefined,
): ReadonlyMap<string, readonly LeaseProblem[]> {
  const table = new PeerTable(ranges ? { ranges } : {});
  table.reset(leases);
  return new Map(
    table.rejected().map(({ lease, by }) => {
      const text = `overlaps ${by.key} of ${describeOwner(by.attrs)}, which counts`;
      return [lease.key, [{ code: "overlap", text }]] as const;
    }),
  );
}

/** Addresses and node ids that several leases carry. */
function findShared(leases: readonly StoredLease[]): ReadonlyMap<string, readonly LeaseProblem[]> {
  const problems = new Map<string, LeaseProblem[]>();
  const note = (code: LeaseProblem["code"], what: string, group: readonly StoredLease[]) => {
    for (const lease of group) {
      const others = group.filter((other) => other !== lease).map((other) => other.key);
      const list = problems.get(lease.key) ?? [];
      list.push({ code, text: `${what} also in ${others.join(", ")}` });
      problems.set(lease.key, list);
    }
  };
  const several = (of: (attrs: LeaseAttrs) => string | undefined) =>
    [...Map.groupBy(leases, ({ attrs }) => of(attrs))].filter(
      ([value, group]) => value !== undefined && group.length > 1,
    );
  for (const [, group] of several((attrs) => attrs.nodeId)) note("id-shared", "node id", group);
  for (const [address, group] of several((attrs) => attrs.publicIP ?? attrs.publicIPv6)) {
    note("address-shared", address ?? "", group);
  }
  return problems;
}
