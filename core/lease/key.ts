import { formatIPv4, parseIPv4 } from "../net/ipv4.ts";
import { formatIPv6, parseIPv6 } from "../net/ipv6.ts";
import { type Prefix, parsePrefix, prefix4, prefix6 } from "../net/prefix.ts";
import type { Subnets } from "./lease.ts";

/** Longest lengths a key may carry: upstream's parser keeps the length in 5 (IPv4) and 7 (IPv6) bits. */
const LONGEST = { 4: 31, 6: 127 } as const;

/** Longest legal key is about 70 characters; anything far above is junk and not worth scanning. */
const LONGEST_KEY = 128;

/**
 * The subnet key of a lease, without the store's prefix: `10.5.72.0-24`, `10.5.72.0-24&fd00:12:13::-56`, and, which
 * upstream does not know and skips, `fd00:12:13::-56` for a node without IPv4. Expects canonical prefixes.
 */
export function encodeKey(subnets: Subnets): string {
  return [subnets.ipv4, subnets.ipv6]
    .filter((subnet) => subnet !== undefined)
    .map((subnet) => subnet.replace("/", "-"))
    .join("&");
}

/**
 * The subnets a key names as canonical prefixes, undefined when it is no subnet key. Anchored at both ends; hex in
 * lower case; host bits must be zero; IPv4 lengths 0..31, IPv6 lengths 0..127, written without leading zeros.
 */
export function decodeKey(key: string): Subnets | undefined {
  if (key.length > LONGEST_KEY) return undefined;
  const joint = key.indexOf("&");
  const head = joint < 0 ? key : key.slice(0, joint);
  if (!head.includes(":")) {
    const ipv4 = decodePart4(head);
    if (ipv4 === undefined) return undefined;
    if (joint < 0) return { ipv4 };
    const ipv6 = decodePart6(key.slice(joint + 1));
    return ipv6 === undefined ? undefined : { ipv4, ipv6 };
  }
  const ipv6 = joint < 0 ? decodePart6(head) : undefined;
  return ipv6 === undefined ? undefined : { ipv6 };
}

/** Parsed prefixes of a lease, one per family it has. Text that is no prefix is left out. */
export function prefixesOf(subnets: Subnets): readonly Prefix[] {
  const prefixes: Prefix[] = [];
  for (const text of [subnets.ipv4, subnets.ipv6]) {
    const prefix = text === undefined ? undefined : parsePrefix(text);
    if (prefix) prefixes.push(prefix);
  }
  return prefixes;
}

/** Subnets for a sentence: `10.5.72.0/24` or `10.5.72.0/24 and fd00:12:13::/56`. */
export function describeSubnets(subnets: Subnets): string {
  return [subnets.ipv4, subnets.ipv6].filter((subnet) => subnet !== undefined).join(" and ");
}

function decodePart4(text: string): string | undefined {
  const dash = text.indexOf("-");
  const length = dash < 0 ? undefined : decodeLength(text, dash + 1, LONGEST[4]);
  if (length === undefined) return undefined;
  const base = parseIPv4(text.slice(0, dash));
  if (base === undefined || prefix4(base, length).base !== base) return undefined;
  return `${formatIPv4(base)}/${length}`;
}

function decodePart6(text: string): string | undefined {
  const dash = text.indexOf("-");
  const length = dash < 0 ? undefined : decodeLength(text, dash + 1, LONGEST[6]);
  if (length === undefined) return undefined;
  const address = text.slice(0, dash);
  // Upstream's pattern is [a-f0-9:]+, so neither upper case nor a dotted tail.
  if (!/^[a-f0-9:]+$/.test(address)) return undefined;
  const base = parseIPv6(address);
  if (base === undefined || prefix6(base, length).base !== base) return undefined;
  return `${formatIPv6(base)}/${length}`;
}

function decodeLength(text: string, from: number, longest: number): number | undefined {
  const digits = text.slice(from);
  if (!/^(0|[1-9][0-9]{0,2})$/.test(digits)) return undefined;
  const length = Number(digits);
  return length <= longest ? length : undefined;
}
