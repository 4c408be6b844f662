import type { Lease, LeaseAttrs, Subnets } from "../lease.ts";
import type { Grant } from "./grant.ts";

/** The own lease as we believe it stands in etcd. */
export interface OwnLease {
  readonly key: string;
  readonly subnets: Subnets;
  /** What we want to stand in the key. */
  readonly attrs: LeaseAttrs;
  /** Revision of the last write to the key that is ours. */
  readonly modRevision: number;
  /** The etcd lease the key hangs on; undefined for a reservation. */
  readonly grant: Grant | undefined;
  /** Whether the grant is one we asked for, so that nothing else hangs on it. */
  readonly granted: boolean;
}

/** The own lease for those outside. */
export function toLease({ key, subnets, attrs, modRevision }: OwnLease): Lease {
  return { key, subnets, attrs, modRevision };
}
