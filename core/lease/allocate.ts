import { formatPrefix, parsePrefix } from "../net/prefix.ts";
import { type Blocks, blockAt, blocksOf, touchedBlocks } from "./blocks.ts";
import type { Subnets } from "./lease.ts";
import { countRuns, mergeRuns, numberOutside, type Run } from "./runs.ts";
import type { SubnetRange, SubnetRanges } from "./store.ts";

/** A subnet that was in use until `freedAt` (any number that grows with time: a revision, ms). */
export interface FreedSubnet {
  readonly subnets: Subnets;
  readonly freedAt: number;
}

/** What to allocate from. */
export interface AllocationRequest {
  readonly ranges: SubnetRanges;
  /** Every subnet in use, by whomever, of any length, inside the ranges or not. */
  readonly taken: readonly Subnets[];
  /** Known history: subnets never used come first, then the ones free for longest. */
  readonly recentlyFreed?: readonly FreedSubnet[];
  /** Uniform in [0, 1), as `Math.random`. */
  readonly random: () => number;
}

/** Why a family has no subnet left. Counts are blocks of the range's subnet length. */
export interface Exhaustion {
  readonly family: 4 | 6;
  readonly range: SubnetRange;
  /** Blocks between subnetMin and subnetMax; 0 when the range is empty. */
  readonly total: number;
  /** Blocks of them that overlap a subnet in use; equals `total`. */
  readonly used: number;
  /** Subnets in use that touch the range. */
  readonly holders: number;
}

/** A free subnet for each family of the ranges, or the family that has none. */
export type Allocation = { readonly subnets: Subnets } | { readonly exhausted: Exhaustion };

/**
 * Chooses a subnet per family, independently and uniformly among all free blocks. O(n log n) in the number of taken
 * subnets, whatever the size of the range. Expects ranges as core/config yields them: aligned, inside their network.
 */
export function chooseSubnets(request: AllocationRequest): Allocation {
  const { ranges } = request;
  const ipv4 = ranges.ipv4 && chooseBlock(ranges.ipv4, 4, request);
  if (typeof ipv4 === "object") return { exhausted: ipv4 };
  const ipv6 = ranges.ipv6 && chooseBlock(ranges.ipv6, 6, request);
  if (typeof ipv6 === "object") return { exhausted: ipv6 };
  return { subnets: { ...(ipv4 && { ipv4 }), ...(ipv6 && { ipv6 }) } };
}

/** A free block as CIDR text, else why there is none. */
function chooseBlock(range: SubnetRange, family: 4 | 6, request: AllocationRequest): string | Exhaustion {
  const blocks = blocksOf(range);
  const runs = request.taken.flatMap((subnets) => runOf(blocks, family, subnets));
  const taken = mergeRuns(runs);
  const used = countRuns(taken);
  if (used === blocks.count) return { family, range, total: blocks.count, used, holders: runs.length };
  const avoided = avoidRecent(blocks, family, taken, request.recentlyFreed ?? []);
  const free = blocks.count - countRuns(avoided);
  // A random source that rounds up to 1 must not lead past the end.
  const rank = Math.min(Math.floor(request.random() * free), free - 1);
  return formatPrefix(blockAt(blocks, numberOutside(avoided, rank)));
}

/** The taken blocks and as many of the freed ones, latest first, as leave a block to choose. */
function avoidRecent(
  blocks: Blocks,
  family: 4 | 6,
  taken: readonly Run[],
  freed: readonly FreedSubnet[],
): readonly Run[] {
  const latestFirst = [...freed]
    .sort((a, b) => b.freedAt - a.freedAt)
    .flatMap(({ subnets }) => runOf(blocks, family, subnets));
  const avoiding = (count: number) => mergeRuns([...taken, ...latestFirst.slice(0, count)]);
  let most = 0;
  let tooMany = latestFirst.length + 1;
  let best = taken;
  while (tooMany - most > 1) {
    // All of them first: that is the answer unless the range has been used up before.
    const count = tooMany > latestFirst.length ? latestFirst.length : Math.floor((most + tooMany) / 2);
    const runs = avoiding(count);
    if (countRuns(runs) < blocks.count) {
      most = count;
      best = runs;
    } else tooMany = count;
  }
  return best;
}

function runOf(blocks: Blocks, family: 4 | 6, subnets: Subnets): Run[] {
  const text = family === 4 ? subnets.ipv4 : subnets.ipv6;
  const prefix = text === undefined ? undefined : parsePrefix(text);
  const run = prefix && touchedBlocks(blocks, prefix);
  return run ? [run] : [];
}

/**
 * Why subnets cannot be held under these ranges, undefined when they can: each family of the ranges must be there,
 * with exactly their length, between their first and last subnet; no other family may be.
 */
export function isLegal(subnets: Subnets, ranges: SubnetRanges): string | undefined {
  return whyIllegal(4, subnets.ipv4, ranges.ipv4) ?? whyIllegal(6, subnets.ipv6, ranges.ipv6);
}

/** Why one subnet cannot be held under a range: wrong length or outside; undefined when it can. */
export function whyIllegalSubnet(subnet: string, range: SubnetRange): string | undefined {
  const prefix = parsePrefix(subnet);
  const { family, min, max } = blocksOf(range);
  if (prefix?.family !== family) return `${subnet} is not an IPv${family} prefix`;
  if (prefix.length !== range.subnetLen) {
    return `${subnet} is a /${prefix.length}, the network config gives out /${range.subnetLen}`;
  }
  if (prefix.base >= min && prefix.base <= max) return undefined;
  return `${subnet} lies outside ${range.subnetMin} to ${range.subnetMax}`;
}

function whyIllegal(
  family: 4 | 6,
  subnet: string | undefined,
  range: SubnetRange | undefined,
): string | undefined {
  if (!range) return subnet && `it has the subnet ${subnet}, the network config has IPv${family} off`;
  if (subnet === undefined) return `it has no IPv${family} subnet, the network config wants one`;
  return whyIllegalSubnet(subnet, range);
}
