import { parseIPv4 } from "../net/ipv4.ts";
import { parseIPv6 } from "../net/ipv6.ts";
import { type Prefix, prefix4, prefix6, prefixSize } from "../net/prefix.ts";
import { Fault } from "../observe/fault.ts";
import type { Run } from "./runs.ts";
import type { SubnetRange } from "./store.ts";

/**
 * More blocks than this in one range (an IPv6 range above /12 cut into /64) are not looked at: indexes stay exact
 * numbers, and nobody fills four thousand billion subnets.
 */
const MOST_BLOCKS = 2 ** 52;

/** A range cut into blocks of its subnet length, numbered from 0 at subnetMin. */
export type Blocks =
  | {
      readonly family: 4;
      readonly length: number;
      readonly min: number;
      readonly max: number;
      readonly count: number;
    }
  | {
      readonly family: 6;
      readonly length: number;
      readonly min: bigint;
      readonly max: bigint;
      readonly count: number;
    };

/** The blocks of a range; none when subnetMin lies above subnetMax. Throws a Fault when the range is not readable. */
export function blocksOf(range: SubnetRange): Blocks {
  const length = range.subnetLen;
  if (!range.subnetMin.includes(":")) {
    const min = parseIPv4(range.subnetMin);
    const max = parseIPv4(range.subnetMax);
    if (min === undefined || max === undefined || length > 32) throw unreadable(range);
    const count = Math.floor((max - min) / 2 ** (32 - length)) + 1;
    return { family: 4, length, min, max, count: Math.max(0, count) };
  }
  const min = parseIPv6(range.subnetMin);
  const max = parseIPv6(range.subnetMax);
  if (min === undefined || max === undefined || length > 128) throw unreadable(range);
  const count = max < min ? 0 : Number(((max - min) >> BigInt(128 - length)) + 1n);
  return { family: 6, length, min, max, count: Math.min(count, MOST_BLOCKS) };
}

/** The block of that number, `0 <= index < count`. */
export function blockAt(blocks: Blocks, index: number): Prefix {
  const { length } = blocks;
  if (blocks.family === 4) return prefix4(blocks.min + index * 2 ** (32 - length), length);
  return prefix6(blocks.min + (BigInt(index) << BigInt(128 - length)), length);
}

/** The blocks a prefix of any length touches, undefined when it touches none. */
export function touchedBlocks(blocks: Blocks, prefix: Prefix): Run | undefined {
  let first: number;
  let last: number;
  if (blocks.family === 4 && prefix.family === 4) {
    const size = 2 ** (32 - blocks.length);
    first = Math.floor((prefix.base - blocks.min) / size);
    last = Math.floor((prefix.base + prefixSize(prefix) - 1 - blocks.min) / size);
  } else if (blocks.family === 6 && prefix.family === 6) {
    const shift = BigInt(128 - blocks.length);
    // The shift of a negative bigint rounds down, as wanted.
    first = Number((prefix.base - blocks.min) >> shift);
    last = Number((prefix.base + prefixSize(prefix) - 1n - blocks.min) >> shift);
  } else return undefined;
  if (last < 0 || first >= blocks.count) return undefined;
  return { first: Math.max(first, 0), last: Math.min(last, blocks.count - 1) };
}

function unreadable({ subnetMin, subnetMax, subnetLen }: SubnetRange): Fault {
  return new Fault(
    "RANGE_INVALID",
    `the subnet range ${subnetMin} to ${subnetMax} in /${subnetLen} is not readable`,
    {
      hint: "check SubnetMin, SubnetMax and SubnetLen of the network config",
    },
  );
}
