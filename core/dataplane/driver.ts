import type { OwnLease, PeerDelta } from "../../plugins/sdk/backend.ts";
import type { LeaseData, Peer } from "../lease/lease.ts";
import type { Pulse } from "../observe/loops.ts";
import type { DataPathCounts, PeerState } from "./peer-state.ts";
import type { Repaired } from "./repaired.ts";

/** What the agent is told by a running driver. */
export interface DriverEvents {
  /** What peers must know changed (a new MAC): the lease has to be rewritten. */
  published(data: LeaseData): void;
  /** The MTU for pods changed: the subnet file has to be rewritten. */
  mtu(mtu: number): void;
  /** Something in the kernel was missing or different and has been set right. */
  repaired?(repaired: Repaired): void;
  /** The driver's loop lives. */
  readonly pulse?: Pulse;
}

/** Runs one backend, declarative or active, behind one face for the agent. */
export interface Driver {
  /** Whether peers matter to the backend at all. */
  readonly watchesPeers: boolean;
  /** Makes the devices; returns what the lease must say. Throws a Fault; nothing half-made is left then. */
  prepare(): Promise<LeaseData>;
  /** The lease is held: programs what follows from it. Returns the MTU for pods. */
  attach(lease: OwnLease): Promise<number>;
  /** Takes over a change of the peers; resolves when it is in the kernel (failures are retried and in health). */
  update(peers: ReadonlyMap<string, Peer>, delta: PeerDelta): Promise<void>;
  /** Repairs until aborted: notices, slow timer, retries. Never rejects. */
  run(events: DriverEvents, signal: AbortSignal): Promise<void>;
  /** How long a stop may take where that is more than usual, ms. */
  readonly stopPatience?: number;
  /** Lets go; the data plane stays. From the call on nothing is told any more, and what was found is over. */
  stop(): Promise<void>;
  /** Undoes `prepare` after a failed start, devices that existed before are left; what was found is over. */
  abandon(): Promise<void>;
  /** How the data path stands; reads what is known, asks nobody. */
  counts(): DataPathCounts;
  /** What the peer of that key needs and how that stands. */
  describe(key: string): PeerState;
  /** What a backend that acts itself tells of its data path, names and values. */
  readonly details?: Readonly<Record<string, string>>;
}
