import { overlaps, parsePrefix } from "../net/prefix.ts";
import type { Finding } from "../observe/finding.ts";
import { whyIllegalSubnet } from "./allocate.ts";
import { noteIllegal, noteTaken } from "./choice-text.ts";
import type { BadEntry, StoredLease } from "./entry.ts";
import type { Subnets } from "./lease.ts";
import type { SubnetRange, SubnetRanges } from "./store.ts";

/** What is left of the subnets of the last run. */
export interface KeptSubnets {
  readonly subnets: Subnets;
  /** Why a part of them could not be kept. */
  readonly notes: readonly Finding[];
}

/**
 * The parts of the previous subnets that are still legal and that nobody holds. Families stand on their own: a node
 * to which the config adds IPv6 keeps its IPv4 subnet, and so its pods.
 */
export function keepPrevious(
  previous: Subnets,
  ranges: SubnetRanges,
  others: readonly (StoredLease | BadEntry)[],
): KeptSubnets {
  const notes: Finding[] = [];
  const ipv4 = keepFamily("ipv4", previous, ranges.ipv4, others, notes);
  const ipv6 = keepFamily("ipv6", previous, ranges.ipv6, others, notes);
  return { subnets: { ...(ipv4 && { ipv4 }), ...(ipv6 && { ipv6 }) }, notes };
}

function keepFamily(
  family: "ipv4" | "ipv6",
  previous: Subnets,
  range: SubnetRange | undefined,
  others: readonly (StoredLease | BadEntry)[],
  notes: Finding[],
): string | undefined {
  const subnet = previous[family];
  if (subnet === undefined || range === undefined) return undefined;
  const reason = whyIllegalSubnet(subnet, range);
  if (reason !== undefined) {
    notes.push(noteIllegal(subnet, reason));
    return undefined;
  }
  const holder = others.find(({ subnets }) => overlapText(subnet, subnets?.[family]));
  if (!holder) return subnet;
  notes.push(noteTaken(subnet, holder));
  return undefined;
}

function overlapText(a: string, b: string | undefined): boolean {
  if (b === undefined) return false;
  const first = parsePrefix(a);
  const second = parsePrefix(b);
  return first !== undefined && second !== undefined && overlaps(first, second);
}
