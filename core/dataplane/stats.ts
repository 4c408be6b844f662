import type { Counts } from "../observe/counts.ts";

/** What the data plane did so far, for metrics; counters only grow, also from one session to the next. */
export interface DataplaneStats {
  /** Objects repaired, by kind: `route`, `neighbour`, `link` …. */
  readonly repairs: Counts;
  /** Changes that the kernel refused, by the name of its error: `ENETUNREACH` …. */
  readonly refusals: Counts;
  /** Comparisons with the kernel that failed as a whole. */
  failedLooks: number;
  /** Times that kernel notices were lost, and everything was compared anew. */
  overruns: number;
}

/** All zero. */
export function newDataplaneStats(): DataplaneStats {
  const repairs = { link: 0, address: 0, neighbour: 0, fdb: 0, nexthop: 0, route: 0 };
  return { repairs, refusals: {}, failedLooks: 0, overruns: 0 };
}
