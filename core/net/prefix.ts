import { formatIPv4, parseIPv4, parseIPv4At } from "./ipv4.ts";
import { formatIPv6, parseIPv6 } from "./ipv6.ts";

/** An IPv4 prefix: `base` is an unsigned 32-bit number with the host bits zero. */
export interface Prefix4 {
  readonly family: 4;
  readonly base: number;
  readonly length: number;
}

/** An IPv6 prefix: `base` is an unsigned 128-bit number with the host bits zero. */
export interface Prefix6 {
  readonly family: 6;
  readonly base: bigint;
  readonly length: number;
}

/**
 * A prefix of either family. IPv4-mapped text (`::ffff:10.0.0.0/104`) is an IPv6 prefix here, written as it is
 * and never equal to or overlapping an IPv4 one; whoever wants none (the network config) refuses it by name.
 */
export type Prefix = Prefix4 | Prefix6;

/** `4` or `6` for address text, undefined when it is no address. IPv4-mapped text is of family 6. */
export function addressFamily(text: string): 4 | 6 | undefined {
  if (!text.includes(":")) return parseIPv4(text) === undefined ? undefined : 4;
  return parseIPv6(text) === undefined ? undefined : 6;
}

/** The one way to write an address (dotted IPv4, RFC 5952 IPv6), undefined when the text is no address. */
export function canonicalAddress(text: string): string | undefined {
  if (!text.includes(":")) return parseIPv4(text) === undefined ? undefined : text;
  const address = parseIPv6(text);
  return address === undefined ? undefined : formatIPv6(address);
}

/**
 * The prefix of CIDR text with the host bits masked off, undefined when it is none. The length is read as Go's
 * `net.ParseCIDR` reads it: decimal digits only, leading zeros allowed (`/08` is 8).
 */
export function parsePrefix(text: string): Prefix | undefined {
  const parts = splitCidr(text);
  if (!parts) return undefined;
  return parts.family === 4 ? prefix4(parts.address, parts.length) : prefix6(parts.address, parts.length);
}

/** Whether CIDR text names an address inside its network (`10.5.72.1/24`); false for text that is no CIDR. */
export function hasHostBits(text: string): boolean {
  const parts = splitCidr(text);
  const prefix = parsePrefix(text);
  return parts !== undefined && prefix !== undefined && parts.address !== prefix.base;
}

type Cidr = { family: 4; address: number; length: number } | { family: 6; address: bigint; length: number };

function splitCidr(text: string): Cidr | undefined {
  const slash = text.indexOf("/");
  if (slash < 0) return undefined;
  const length = parseLength(text, slash + 1);
  if (length === undefined) return undefined;
  // Nearly all are IPv4, and read in place.
  const ipv4 = parseIPv4At(text, 0, slash);
  if (ipv4 !== undefined) return length > 32 ? undefined : { family: 4, address: ipv4, length };
  const address = parseIPv6(text.slice(0, slash));
  return address === undefined || length > 128 ? undefined : { family: 6, address, length };
}

function parseLength(text: string, from: number): number | undefined {
  if (from === text.length) return undefined;
  let length = 0;
  for (let at = from; at < text.length; at++) {
    const digit = text.charCodeAt(at) - 48;
    if (!(digit >= 0 && digit <= 9)) return undefined;
    length = length * 10 + digit;
    if (length > 128) return undefined;
  }
  return length;
}

/** The IPv4 prefix of `length` (0..32) that contains `address`. */
export function prefix4(address: number, length: number): Prefix4 {
  // A shift by 32 is a shift by 0 in JavaScript.
  const base = length === 0 ? 0 : (address & (-1 << (32 - length))) >>> 0;
  return { family: 4, base, length };
}

/** The IPv6 prefix of `length` (0..128) that contains `address`. */
export function prefix6(address: bigint, length: number): Prefix6 {
  const host = BigInt(128 - length);
  return { family: 6, base: (address >> host) << host, length };
}

/** Canonical CIDR text. */
export function formatPrefix(prefix: Prefix): string {
  return `${formatBase(prefix)}/${prefix.length}`;
}

function formatBase(prefix: Prefix): string {
  return prefix.family === 4 ? formatIPv4(prefix.base) : formatIPv6(prefix.base);
}

/** The one way to write a prefix, host bits masked off; undefined when the text is no CIDR. */
export function canonicalPrefix(text: string): string | undefined {
  const prefix = parsePrefix(text);
  return prefix && formatPrefix(prefix);
}

/** Whether address text lies in the prefix; false for text that is no address of that family. */
export function containsAddress(prefix: Prefix, addressText: string): boolean {
  if (prefix.family === 4) {
    const address = parseIPv4(addressText);
    return address !== undefined && prefix4(address, prefix.length).base === prefix.base;
  }
  const address = addressText.includes(":") ? parseIPv6(addressText) : undefined;
  return address !== undefined && prefix6(address, prefix.length).base === prefix.base;
}

/** Whether every address of `inner` lies in `outer`; false across families. */
export function containsPrefix(outer: Prefix, inner: Prefix): boolean {
  return outer.length <= inner.length && overlaps(outer, inner);
}

/** Whether two prefixes share an address; false across families. */
export function overlaps(a: Prefix, b: Prefix): boolean {
  const length = Math.min(a.length, b.length);
  if (a.family === 4 && b.family === 4) return prefix4(a.base, length).base === prefix4(b.base, length).base;
  if (a.family === 6 && b.family === 6) return prefix6(a.base, length).base === prefix6(b.base, length).base;
  return false;
}

/** Number of addresses: a number for IPv4 (up to 2^32), a bigint for IPv6. */
export function prefixSize(prefix: Prefix4): number;
export function prefixSize(prefix: Prefix6): bigint;
export function prefixSize(prefix: Prefix): number | bigint;
export function prefixSize(prefix: Prefix): number | bigint {
  return prefix.family === 4 ? 2 ** (32 - prefix.length) : 1n << BigInt(128 - prefix.length);
}

/** The prefix of the same length right after this one, undefined at the end of the address space. */
export function nextPrefix(prefix: Prefix4): Prefix4 | undefined;
export function nextPrefix(prefix: Prefix6): Prefix6 | undefined;
export function nextPrefix(prefix: Prefix): Prefix | undefined;
export function nextPrefix(prefix: Prefix): Prefix | undefined {
  if (prefix.family === 4) {
    const base = prefix.base + prefixSize(prefix);
    return base >= 2 ** 32 ? undefined : { family: 4, base, length: prefix.length };
  }
  const base = prefix.base + prefixSize(prefix);
  return base >> 128n === 0n ? { family: 6, base, length: prefix.length } : undefined;
}

/** Text of the first address after the base (the gateway of a pod subnet); of the base itself for /32 and /128. */
export function firstHost(prefix: Prefix): string {
  if (prefix.family === 4) return formatIPv4(prefix.base + (prefix.length < 32 ? 1 : 0));
  return formatIPv6(prefix.base + (prefix.length < 128 ? 1n : 0n));
}
