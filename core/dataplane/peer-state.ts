import { batchLines, toolOf } from "../netlink/command/lines.ts";
import type { BatchObject } from "../netlink/kernel.ts";
import { describeError } from "../observe/fault.ts";

/** How the data path stands as a whole. */
export interface DataPathCounts {
  /** Peers that are to be reached. */
  readonly wanted: number;
  /** Those of them that everything is in place for. */
  readonly programmed: number;
  /** Peers that the kernel (or the backend's own data path) refuses something of. */
  readonly refused: number;
  /** Peers that cannot be planned for as they are, wholly or in part (another backend, bad data). */
  readonly unusable: number;
  /** Objects wanted in the kernel, the node's own ones too. */
  readonly objects: number;
  /** Those of them, and of the stale ones to be removed, that the kernel refuses. */
  readonly failing: number;
}

/** One thing that a peer needs. */
export interface NeededObject {
  /** The command that would make it, as for a shell. */
  readonly command: string;
  /** The device it hangs on, where it names one. */
  readonly dev?: string;
  /** What the kernel says against it, absent when it is in place. */
  readonly error?: string;
}

/** How one peer stands in the data path. */
export interface PeerState {
  readonly objects: readonly NeededObject[];
  /** Why something is left out or not in place. */
  readonly problems: readonly string[];
}

/** An object as the command that would make it: `ip route replace 10.5.9.0/24 …`. */
export function describeObject(object: BatchObject): string {
  try {
    return `${toolOf(object)} ${batchLines({ action: "put", object }).join("; ")}`;
  } catch (error) {
    return `${object.kind} (${describeError(error)})`;
  }
}
