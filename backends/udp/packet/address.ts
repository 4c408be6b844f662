/** The two families, as leases and configs name them. */
export type Family = "ipv4" | "ipv6";

/** Both, IPv4 first. */
export const FAMILIES: readonly Family[] = ["ipv4", "ipv6"];

/** An address as big-endian 32-bit words, signed (what `DataView.getInt32` gives): one for IPv4, four for IPv6. */
export interface ParsedAddress {
  readonly family: Family;
  readonly words: readonly number[];
}

/** Parses canonical text (dotted IPv4, RFC 5952 IPv6); undefined for anything else. */
export function parseAddress(text: string): ParsedAddress | undefined {
  return text.includes(":") ? parseIpv6(text) : parseIpv4(text);
}

/** An address with the number of leading bits that count. */
export interface ParsedPrefix extends ParsedAddress {
  readonly length: number;
}

/** Parses CIDR text; undefined for anything else. */
export function parsePrefix(text: string): ParsedPrefix | undefined {
  const slash = text.indexOf("/");
  const address = slash < 0 ? undefined : parseAddress(text.slice(0, slash));
  const length = Number(text.slice(slash + 1));
  if (!address || !/^\/\d{1,3}$/.test(text.slice(slash)) || length > 32 * address.words.length)
    return undefined;
  return { ...address, length };
}

function parseIpv4(text: string): ParsedAddress | undefined {
  if (!/^\d{1,3}(\.\d{1,3}){3}$/.test(text)) return undefined;
  const octets = text.split(".").map(Number);
  if (octets.some((octet) => octet > 255)) return undefined;
  return { family: "ipv4", words: [octets.reduce((word, octet) => (word << 8) | octet, 0)] };
}

function parseIpv6(text: string): ParsedAddress | undefined {
  const halves = text.split("::");
  if (halves.length > 2) return undefined;
  const [head = [], tail] = halves.map((half) => (half === "" ? [] : half.split(":")));
  const missing = 8 - head.length - (tail?.length ?? 0);
  if (tail ? missing < 1 : missing !== 0) return undefined;
  const groups = [...head, ...Array<string>(tail ? missing : 0).fill("0"), ...(tail ?? [])];
  if (!groups.every((group) => /^[0-9a-f]{1,4}$/i.test(group))) return undefined;
  const values = groups.map((group) => Number.parseInt(group, 16));
  return {
    family: "ipv6",
    words: [0, 2, 4, 6].map((n) => ((values[n] ?? 0) << 16) | (values[n + 1] ?? 0)),
  };
}
