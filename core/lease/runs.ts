/** Consecutive whole numbers, both ends included. */
export interface Run {
  readonly first: number;
  readonly last: number;
}

/** The same numbers as sorted runs that neither overlap nor touch. O(n log n). */
export function mergeRuns(runs: readonly Run[]): readonly Run[] {
  const merged: Run[] = [];
  let open: { first: number; last: number } | undefined;
  for (const run of [...runs].sort((a, b) => a.first - b.first)) {
    if (open && run.first <= open.last + 1) {
      if (run.last > open.last) open.last = run.last;
      continue;
    }
    open = { first: run.first, last: run.last };
    merged.push(open);
  }
  return merged;
}

/** How many numbers merged runs hold. */
export function countRuns(merged: readonly Run[]): number {
  let count = 0;
  for (const run of merged) count += run.last - run.first + 1;
  return count;
}

/** The number of rank `rank` (from 0) among the whole numbers >= 0 that lie in none of the merged runs. */
export function numberOutside(merged: readonly Run[], rank: number): number {
  let candidate = rank;
  for (const run of merged) {
    if (candidate < run.first) break;
    candidate += run.last - run.first + 1;
  }
  return candidate;
}
