import { parseIPv4At } from "../net/ipv4.ts";
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
  const headEnd = joint < 0 ? key.length : joint;
  const ipv4 = decodePart4(key, headEnd);
  if (ipv4 === undefined) {
    const ipv6 = joint < 0 ? decodePart6(key) : undefined;
    return ipv6 === undefined ? undefined : { ipv6 };
  }
  if (joint < 0) return { ipv4 };
  const ipv6 = decodePart6(key.slice(joint + 1));
  return ipv6 === undefined ? undefined : { ipv4, ipv6 };
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

/** The IPv4 part in front of `end`; read in place, for a start-up reads every key of the cluster. */
function decodePart4(key: string, end: number): string | undefined {
  const dash = key.indexOf("-");
  if (dash < 0 || dash >= end) return undefined;
  const length = decodeLength(key, dash + 1, end, LONGEST[4]);
  const base = parseIPv4At(key, 0, dash);
  if (length === undefined || base === undefined || prefix4(base, length).base !== base) return undefined;
  // parseIPv4At accepts the canonical spelling only.
  return `${key.slice(0, dash)}/${length}`;
}

function decodePart6(text: string): string | undefined {
  const dash = text.indexOf("-");
  if (dash < 0) return undefined;
  const length = decodeLength(text, dash + 1, text.length, LONGEST[6]);
  const address = text.slice(0, dash);
  // Upstream's pattern is [a-f0-9:]+, so neither upper case nor a dotted tail.
  if (length === undefined || !/^[a-f0-9:]+$/.test(address)) return undefined;
  const base = parseIPv6(address);
  if (base === undefined || prefix6(base, length).base !== base) return undefined;
  return `${formatIPv6(base)}/${length}`;
}

/** The decimal number in `text[from, end)`, without leading zeros. */
function decodeLength(text: string, from: number, end: number, longest: number): number | undefined {
  if (end === from || (end - from > 1 && text[from] === "0")) return undefined;
  let length = 0;
  for (let at = from; at < end; at++) {
    const digit = text.charCodeAt(at) - 48;
    if (!(digit >= 0 && digit <= 9)) return undefined;
    length = length * 10 + digit;
    if (length > longest) return undefined;
  }
  return length;
}
