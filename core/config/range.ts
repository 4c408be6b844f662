import type { SubnetRange } from "../lease/store.ts";
import { formatIPv4 } from "../net/ipv4.ts";
import { formatIPv6 } from "../net/ipv6.ts";
import { formatPrefix, type Prefix, prefix4, prefix6 } from "../net/prefix.ts";

/** What the config says about one family, already read; addresses are unsigned numbers of either family. */
export interface RangeInput {
  readonly network: Prefix;
  /** Zero counts as not given, like zero addresses: so it is in upstream. */
  readonly subnetLen?: number | undefined;
  readonly subnetMin?: bigint | undefined;
  readonly subnetMax?: bigint | undefined;
}

export type RangeField = "network" | "subnetLen" | "subnetMin" | "subnetMax";

/** What is wrong with one field: a sentence that goes on after the value. */
export interface RangeIssue {
  readonly field: RangeField;
  readonly problem: string;
  /** The legal value nearest to the given one, as text; undefined when there is none. */
  readonly nearest?: string;
}

export type RangePlan =
  | { readonly range: SubnetRange; readonly issues?: undefined }
  | { readonly range?: undefined; readonly issues: readonly RangeIssue[] };

/** At least four subnets must fit, so a subnet is at least two bits longer than the network (upstream's rule). */
const FOUR_SUBNETS = 2;

interface FamilyRules {
  readonly bits: number;
  /** Longest subnet: four addresses. */
  readonly longest: number;
  /** Subnet length when none is given and at least four fit. */
  readonly usual: number;
}

const RULES: Readonly<Record<4 | 6, FamilyRules>> = {
  4: { bits: 32, longest: 30, usual: 24 },
  6: { bits: 128, longest: 126, usual: 64 },
};

/**
 * The range of one family with upstream's defaults filled in, or everything that is wrong with it.
 * The first block is left out unless `subnetMin` names it. Nothing wraps at the end of the address space.
 */
export function planRange(input: RangeInput): RangePlan {
  const { network } = input;
  const rules = RULES[network.family];
  if (network.length === 0) {
    return { issues: [{ field: "network", problem: "is the whole address space, not a cluster network" }] };
  }
  const widest = rules.longest - FOUR_SUBNETS;
  if (network.length > widest) {
    const problem = `holds fewer than four subnets: Network /${network.length} is too small, at most /${widest}`;
    return { issues: [{ field: "network", problem, nearest: widen(network, widest) }] };
  }
  const lengthIssue = checkLength(input, rules);
  // After a wrong length the bounds are judged by the length that is proposed instead.
  const subnetLen = Number(lengthIssue?.nearest ?? 0) || input.subnetLen || usualLength(network, rules);
  const blocks = new Blocks(network, rules, subnetLen);
  const issues = [lengthIssue, ...checkBounds(input, blocks)].filter((issue) => issue !== undefined);
  if (issues.length > 0) return { issues };
  return {
    range: {
      network: formatPrefix(network),
      subnetLen,
      subnetMin: blocks.format(input.subnetMin || blocks.second),
      subnetMax: blocks.format(input.subnetMax || blocks.last),
    },
  };
}

function usualLength(network: Prefix, rules: FamilyRules): number {
  return Math.max(rules.usual, network.length + FOUR_SUBNETS);
}

function checkLength({ network, subnetLen }: RangeInput, rules: FamilyRules): RangeIssue | undefined {
  if (!subnetLen) return undefined;
  if (subnetLen > rules.longest) {
    const problem = `is too long: a subnet needs at least four addresses, at most /${rules.longest}`;
    return { field: "subnetLen", problem, nearest: String(rules.longest) };
  }
  const shortest = network.length + FOUR_SUBNETS;
  if (subnetLen >= shortest) return undefined;
  const problem = `leaves fewer than four subnets in ${formatPrefix(network)}`;
  return { field: "subnetLen", problem, nearest: String(shortest) };
}

/** Both bounds together, so that applying every `nearest` gives a legal range. */
function checkBounds({ subnetMin, subnetMax }: RangeInput, blocks: Blocks): (RangeIssue | undefined)[] {
  const highest = subnetMax && blocks.holds(subnetMax) ? blocks.blockOf(subnetMax) : blocks.last;
  const min = subnetMin ? blocks.nearest(subnetMin, blocks.base, highest) : blocks.second;
  const max = subnetMax ? blocks.nearest(subnetMax, min, blocks.last) : blocks.last;
  return [
    subnetMin && subnetMin !== min
      ? {
          field: "subnetMin",
          problem: blocks.explain(subnetMin, "above", highest),
          nearest: blocks.format(min),
        }
      : undefined,
    subnetMax && subnetMax !== max
      ? { field: "subnetMax", problem: blocks.explain(subnetMax, "below", min), nearest: blocks.format(max) }
      : undefined,
  ];
}

/** A network cut into subnets of one length. */
class Blocks {
  readonly base: bigint;
  readonly second: bigint;
  readonly last: bigint;
  readonly #size: bigint;
  readonly #network: Prefix;
  readonly #length: number;

  constructor(network: Prefix, rules: FamilyRules, length: number) {
    this.#network = network;
    this.#length = length;
    this.#size = 1n << BigInt(rules.bits - length);
    this.base = BigInt(network.base);
    this.second = this.base + this.#size;
    this.last = this.base + (1n << BigInt(rules.bits - network.length)) - this.#size;
  }

  holds(address: bigint): boolean {
    return address >= this.base && address < this.last + this.#size;
  }

  blockOf(address: bigint): bigint {
    return address - (address % this.#size);
  }

  /** The block that contains an address, or the nearest one between two others. */
  nearest(address: bigint, low: bigint, high: bigint): bigint {
    const block = this.blockOf(address);
    return block < low ? low : block > high ? high : block;
  }

  /** Why an address cannot be a bound; `bound` is the other end it must not be beyond. */
  explain(address: bigint, beyond: "above" | "below", bound: bigint): string {
    if (!this.holds(address)) return `lies outside the network ${formatPrefix(this.#network)}`;
    if (address % this.#size !== 0n) return `is no /${this.#length} boundary`;
    if (beyond === "above") return `lies above the last subnet ${this.format(bound)}`;
    const skipped = bound === this.second ? " (the block before it is used only if SubnetMin names it)" : "";
    return `lies below the first subnet ${this.format(bound)}${skipped}`;
  }

  format(address: bigint): string {
    return this.#network.family === 4 ? formatIPv4(Number(address)) : formatIPv6(address);
  }
}

function widen(network: Prefix, length: number): string {
  return formatPrefix(network.family === 4 ? prefix4(network.base, length) : prefix6(network.base, length));
}
