import type { Lease, LeaseAttrs, Subnets } from "./lease.ts";
import type { StoreStats } from "./stats.ts";

/** The network config as stored, before it is understood. */
export interface ConfigDocument {
  readonly text: string;
  /** Where it came from, for error messages: an etcd key or a file path. */
  readonly source: string;
  /** Store revision of the document, 0 when the store has none. */
  readonly revision: number;
}

/** One family of the network out of which subnets are given: canonical text, see core/config. */
export interface SubnetRange {
  readonly network: string;
  /** Prefix length of every lease. */
  readonly subnetLen: number;
  /** First and last legal subnet base address. */
  readonly subnetMin: string;
  readonly subnetMax: string;
}

/** The ranges of the families the config enables. */
export interface SubnetRanges {
  readonly ipv4?: SubnetRange;
  readonly ipv6?: SubnetRange;
}

/** What a node asks for at start. */
export interface LeaseRequest {
  readonly ranges: SubnetRanges;
  readonly attrs: LeaseAttrs;
  /** Subnets of the last run, from the subnet file (and remembered leases); tried before a fresh one. */
  readonly previous?: Subnets;
}

/** How the own lease came about, for the log. */
export type LeaseOrigin = "node-id" | "public-ip" | "previous" | "reservation" | "fresh";

/** The own lease as it stands in the store. */
export interface HeldLease {
  readonly lease: Lease;
  readonly origin: LeaseOrigin;
  /** A reservation has no expiry and is never renewed. */
  readonly reservation: boolean;
}

/** State of the own lease as the keeper sees it. */
export type LeaseState =
  | { readonly state: "held"; readonly lease: Lease; readonly secondsLeft?: number }
  | {
      readonly state: "renewal-failing";
      readonly lease: Lease;
      readonly error: string;
      readonly secondsLeft: number;
    }
  | { readonly state: "conflict"; readonly lease: Lease; readonly holder: Lease };

/**
 * The other nodes. `snapshot` is complete: what it lacks is gone. `changes` are coalesced by key, later ones win.
 * The own key is included; consumers filter it.
 */
export type PeerUpdate =
  | {
      readonly type: "snapshot";
      readonly leases: readonly Lease[];
      readonly revision: number;
      /** Keys that exist but whose value cannot be read: no proof that the lease known under them is gone. */
      readonly unreadable?: readonly string[];
    }
  | {
      readonly type: "changes";
      readonly puts: readonly Lease[];
      /** Subnet keys removed. */
      readonly deletes: readonly string[];
      readonly revision: number;
    };

/** Where leases live. One implementation per datastore; all of core/agent goes through this. */
export interface LeaseStore {
  /** For logs: kind and address, no secrets. */
  readonly description: string;

  /** What it did so far, where it counts that. */
  readonly stats?: StoreStats;

  /** Waits, with back-off and a health finding, until the network config can be read; rejects only on abort. */
  readConfig(signal: AbortSignal): Promise<ConfigDocument>;

  /** Each later version of the network config, until aborted; a deleted config is a finding, not a version. */
  watchConfig(known: ConfigDocument, signal: AbortSignal): AsyncIterable<ConfigDocument>;

  /**
   * Acquires the lease of this node: by node id, public IP, previous subnet, reservation, else a fresh one.
   * Store outages are waited for; what cannot succeed (out of subnets, identity clash) is thrown as a Fault.
   */
  acquire(request: LeaseRequest, signal: AbortSignal): Promise<HeldLease>;

  /**
   * Renews, watches and takes back the own lease until aborted. Reports the state with each look at it, changed or
   * not, at least every two minutes: whoever hears nothing for longer knows that it hangs. Never rejects.
   */
  keep(held: HeldLease, onState: (state: LeaseState) => void, signal: AbortSignal): Promise<void>;

  /** Rewrites the own attributes (compare-and-swap). Throws a Fault on conflict. */
  updateAttrs(attrs: LeaseAttrs, signal: AbortSignal): Promise<void>;

  /** Endless: a snapshot first, then changes or further snapshots; ends only on abort. */
  watchPeers(signal: AbortSignal): AsyncIterable<PeerUpdate>;

  /** Subnets of all keys, also of those whose value cannot be read; asked now, from nobody's memory. */
  takenSubnets?(signal: AbortSignal): Promise<readonly Subnets[]>;

  /**
   * Makes this node, or keeps it, the one of the cluster that does `task`, for the next `ms` ms at least (whole seconds
   * count); false while another one is. Absent where the store has no elections.
   */
  lead?(task: string, ms: number, signal: AbortSignal): Promise<boolean>;

  /** This host's address changed: connections made from the old one lead nowhere, and are made anew. */
  reconnect(): void;

  /** Gives the own lease back (only when the operator asked for release on stop). */
  release(): Promise<void>;

  /** Ends all connections; idempotent. */
  close(): Promise<void>;
}
