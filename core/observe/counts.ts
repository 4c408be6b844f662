/** Numbers by name that only grow. */
export type Counts = Record<string, number>;

/** Adds to one number of a family; a name that is new begins at 0. */
export function count(counts: Counts, name: string, by = 1): void {
  counts[name] = (counts[name] ?? 0) + by;
}
