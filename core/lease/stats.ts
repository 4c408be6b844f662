import type { Counts } from "../observe/counts.ts";
import type { Histogram } from "../observe/histogram.ts";

/** What a lease store did so far, for metrics and benchmarks; counters only grow. */
export interface StoreStats {
  /** Calls by name, tries included; for etcd `range`, `txn`, `leaseGrant`, `leaseRevoke`, `leaseKeepAlive`, `watch`, `authenticate`. */
  readonly requests: Counts;
  /** Calls that failed, by kind of failure (for etcd see etcd/failure.ts). */
  readonly failures: Counts;
  /** Seconds that calls with one answer took, by name; those that failed are left out. */
  readonly latency: Record<string, Histogram>;
  /** Events of other nodes' and the own key that came by the watch. */
  watchEvents: number;
  /** Watches opened after the first. */
  reconnects: number;
  /** Complete lists after the first. */
  relists: number;
  /** Keys or values below `subnets/` that are no lease. */
  badEntries: number;
  /** Successful renewals of the own lease. */
  renewals: number;
}

/** All zero. */
export function newStoreStats(): StoreStats {
  return {
    requests: {},
    failures: {},
    latency: {},
    watchEvents: 0,
    reconnects: 0,
    relists: 0,
    badEntries: 0,
    renewals: 0,
  };
}
