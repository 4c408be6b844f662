/** What the store did so far, for metrics and benchmarks; counters only grow. */
export interface EtcdStats {
  /** Calls by name, tries included: `range`, `txn`, `leaseGrant`, `leaseRevoke`, `leaseKeepAlive`, `watch`, `authenticate`. */
  readonly requests: Record<string, number>;
  /** Calls that failed, by kind of failure (see failure.ts). */
  readonly failures: Record<string, number>;
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
export function newStats(): EtcdStats {
  return {
    requests: {},
    failures: {},
    watchEvents: 0,
    reconnects: 0,
    relists: 0,
    badEntries: 0,
    renewals: 0,
  };
}

/** Adds one to a counter of a family. */
export function count(family: Record<string, number>, name: string): void {
  family[name] = (family[name] ?? 0) + 1;
}
