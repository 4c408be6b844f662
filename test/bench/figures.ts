/** What a figure counts in. Times are kept in seconds or milliseconds, memory in megabytes (10^6 bytes). */
export type Unit =
  | "s"
  | "ms"
  | "MB"
  | "%"
  | "per day"
  | "per minute"
  | "Gbit/s"
  | "µs"
  | "×"
  | "k/s"
  | "CPU s/Gbit";

/** One thing that is measured, and what it should come to. */
export interface FigureDefinition {
  readonly id: string;
  readonly label: string;
  readonly unit: Unit;
  /** Upper bound of the median for our own executable. */
  readonly atMost?: number;
  /** Lower bound of it. */
  readonly atLeast?: number;
  /** Measured on our own executable only. */
  readonly oursOnly?: boolean;
}

/** All samples of one figure. */
export interface Figure extends FigureDefinition {
  readonly ours: readonly number[];
  readonly other: readonly number[];
}

/** Middle value and extremes of some samples. */
export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

/** Undefined for no samples. The median of an even number of samples is the mean of the middle two. */
export function spreadOf(samples: readonly number[]): Spread | undefined {
  const sorted = samples.toSorted((a, b) => a - b);
  const [min, max] = [sorted[0], sorted.at(-1)];
  if (min === undefined || max === undefined) return undefined;
  return { median: (at(sorted, (sorted.length - 1) >> 1) + at(sorted, sorted.length >> 1)) / 2, min, max };
}

/** The smallest sample that at least `share` (0–1) of all samples do not exceed (nearest rank); NaN for no samples. */
export function percentile(samples: readonly number[], share: number): number {
  const sorted = samples.toSorted((a, b) => a - b);
  return at(sorted, Math.max(0, Math.ceil(share * sorted.length) - 1));
}

/** Whether the median keeps to the target; undefined without target or samples. */
export function meetsTarget({ ours, atMost, atLeast }: Figure): boolean | undefined {
  const spread = spreadOf(ours);
  if (spread === undefined || (atMost === undefined && atLeast === undefined)) return undefined;
  return (
    spread.median <= (atMost ?? Number.POSITIVE_INFINITY) &&
    spread.median >= (atLeast ?? Number.NEGATIVE_INFINITY)
  );
}

/** How much of the other's median ours is (0.25: a quarter); undefined when either is missing or the other's is 0. */
export function ratioOf({ ours, other }: Figure): number | undefined {
  const [mine, theirs] = [spreadOf(ours), spreadOf(other)];
  return mine === undefined || theirs === undefined || theirs.median === 0
    ? undefined
    : mine.median / theirs.median;
}

function at(sorted: readonly number[], index: number): number {
  return sorted[index] ?? Number.NaN;
}
