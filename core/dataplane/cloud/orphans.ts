import type { CloudReading, CloudRoute } from "../../../plugins/sdk/cloud.ts";
import { parsePrefix } from "../../net/prefix.ts";
import { isLeased, isLeaseShaped, type LeaseRange } from "./plan.ts";

/** A route without lease, as far as it has to be recognised. */
export type Orphan = Pick<CloudRoute, "dst" | "target">;

export interface OrphansInput {
  /** ms for which a route has to be without lease, without a break, before it is due. */
  readonly grace: number;
  readonly markedOnly: boolean;
  readonly ranges: readonly LeaseRange[];
  /** A monotonic clock in ms. */
  readonly now?: () => number;
}

/**
 * Routes to nodes whose subnet no lease has, and for how long: a clock of our own, begun when this node first saw it,
 * so that neither a restart nor a gap in the watch makes a route look older than it is known to be.
 */
export class Orphans {
  readonly #input: OrphansInput;
  readonly #now: () => number;
  #since = new Map<string, number>();

  constructor(input: OrphansInput) {
    this.#input = input;
    this.#now = input.now ?? (() => performance.now());
  }

  /** Takes note of a look at the tables; returns the routes that have been without lease for the grace time. */
  observe(reading: CloudReading, self: string, leased: readonly string[]): readonly Orphan[] {
    const now = this.#now();
    const since = new Map<string, number>();
    const due: Orphan[] = [];
    for (const { dst, target } of this.#find(reading, self, leased)) {
      const key = `${dst} ${target}`;
      if (since.has(key)) continue;
      const first = this.#since.get(key) ?? now;
      since.set(key, first);
      if (now - first >= this.#input.grace) due.push({ dst, target });
    }
    this.#since = since;
    return due;
  }

  /** ms until the first one is due, undefined when there is none. */
  get next(): number | undefined {
    const first = Math.min(...this.#since.values());
    return Number.isFinite(first) ? Math.max(0, first + this.#input.grace - this.#now()) : undefined;
  }

  #find({ tables }: CloudReading, self: string, leased: readonly string[]): readonly CloudRoute[] {
    const { markedOnly, ranges } = this.#input;
    return tables
      .flatMap(({ routes }) => routes)
      .filter(({ dst, kind, target, marked }) => {
        if (kind !== "node" || target === self || (markedOnly && !marked)) return false;
        const prefix = parsePrefix(dst);
        return prefix !== undefined && isLeaseShaped(prefix, ranges) && !isLeased(prefix, leased);
      });
  }
}
