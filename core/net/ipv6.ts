import { formatIPv4, parseIPv4At } from "./ipv4.ts";

const COLON = 58;
const GROUPS = 8;

/**
 * The address of IPv6 text as an unsigned 128-bit number, undefined when it is not one. As strict as Go's
 * `netip.ParseAddr`: `::` once and for at least one group, at most four hex digits per group, a dotted IPv4 tail
 * (`::ffff:1.2.3.4`) without leading zeros. A zone (`fe80::1%eth0`) is refused: it means nothing off the host.
 */
export function parseIPv6(text: string): bigint | undefined {
  const groups = parseGroups(text);
  if (!groups) return undefined;
  const at = (index: number) => groups[index] ?? 0;
  const quarter = (index: number) => BigInt(at(index) * 65536 + at(index + 1));
  return (quarter(0) << 96n) | (quarter(2) << 64n) | (quarter(4) << 32n) | quarter(6);
}

function parseGroups(text: string): number[] | undefined {
  const end = text.length;
  // "::" to "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255"
  if (end < 2 || end > 45) return undefined;
  const groups: number[] = [];
  let gap = -1;
  let at = 0;
  if (text.charCodeAt(0) === COLON) {
    if (text.charCodeAt(1) !== COLON) return undefined;
    gap = 0;
    at = 2;
  }
  while (at < end) {
    if (groups.length === GROUPS) return undefined;
    const start = at;
    let value = 0;
    for (let digit = hexDigit(text.charCodeAt(at)); digit >= 0; digit = hexDigit(text.charCodeAt(at))) {
      value = value * 16 + digit;
      at++;
      if (at - start > 4) return undefined;
    }
    if (at === start) return undefined;
    if (text[at] === ".") {
      const tail = groups.length <= GROUPS - 2 ? parseIPv4At(text, start, end) : undefined;
      if (tail === undefined) return undefined;
      groups.push(tail >>> 16, tail & 0xffff);
      break;
    }
    groups.push(value);
    if (at === end) break;
    if (text.charCodeAt(at) !== COLON) return undefined;
    at++;
    if (text.charCodeAt(at) === COLON) {
      if (gap >= 0) return undefined;
      gap = groups.length;
      at++;
    } else if (at === end) return undefined;
  }
  if (gap < 0) return groups.length === GROUPS ? groups : undefined;
  if (groups.length === GROUPS) return undefined;
  groups.splice(gap, 0, ...new Array<number>(GROUPS - groups.length).fill(0));
  return groups;
}

function hexDigit(code: number): number {
  if (code >= 48 && code <= 57) return code - 48;
  const lower = code | 32;
  return lower >= 97 && lower <= 102 ? lower - 87 : -1;
}

/**
 * RFC 5952 text of an unsigned 128-bit number: lower case, the longest run of two or more zero groups (the first
 * one on a tie) as `::`. IPv4-mapped addresses are written `::ffff:1.2.3.4` (RFC 5952 §5), as the kernel tools do.
 */
export function formatIPv6(address: bigint): string {
  if (isIPv4Mapped(address)) return `::ffff:${formatIPv4(Number(address & 0xffffffffn))}`;
  const groups: number[] = [];
  for (let shift = 96n; shift >= 0n; shift -= 32n) {
    const quarter = Number((address >> shift) & 0xffffffffn);
    groups.push(quarter >>> 16, quarter & 0xffff);
  }
  const { start, length } = longestZeroRun(groups);
  const text = (from: number, to: number) =>
    groups
      .slice(from, to)
      .map((group) => group.toString(16))
      .join(":");
  return length < 2 ? text(0, GROUPS) : `${text(0, start)}::${text(start + length, GROUPS)}`;
}

function longestZeroRun(groups: readonly number[]): { start: number; length: number } {
  let best = { start: 0, length: 0 };
  let length = 0;
  for (const [index, group] of groups.entries()) {
    length = group === 0 ? length + 1 : 0;
    if (length > best.length) best = { start: index + 1 - length, length };
  }
  return best;
}

/** Whether an address lies in `::ffff:0:0/96`: an IPv4 address in IPv6 clothes, never a legal pod address. */
export function isIPv4Mapped(address: bigint): boolean {
  return address >> 32n === 0xffffn;
}
