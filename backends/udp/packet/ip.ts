/** Offsets in an IPv4 header (RFC 791). */
export const IP4 = {
  tos: 1,
  totalLength: 2,
  id: 4,
  fragment: 6,
  ttl: 8,
  protocol: 9,
  checksum: 10,
  source: 12,
  destination: 16,
  length: 20,
} as const;

/** Offsets in an IPv6 header (RFC 8200). */
export const IP6 = {
  payloadLength: 4,
  nextHeader: 6,
  hopLimit: 7,
  source: 8,
  destination: 24,
  length: 40,
} as const;

/** Offsets in a TCP header (RFC 9293). */
export const TCP = {
  sequence: 4,
  acknowledgement: 8,
  dataOffset: 12,
  flags: 13,
  window: 14,
  checksum: 16,
  length: 20,
} as const;

/** Offsets in a UDP header (RFC 768). */
export const UDP = { length: 4, checksum: 6, headerLength: 8 } as const;

/** Protocol numbers (IANA). */
export const PROTOCOL = { icmp: 1, tcp: 6, udp: 17, icmp6: 58 } as const;

/** Bits of {@link TCP}.flags. */
export const TCP_FLAG = { fin: 0x01, psh: 0x08, ack: 0x10, cwr: 0x80 } as const;

/** Bits of {@link IP4}.fragment. */
export const DONT_FRAGMENT = 0x4000;
export const FRAGMENTED = 0x3fff;

/** A big-endian 16-bit field as the little-endian word that a checksum adds up. */
export function swap16(value: number): number {
  return ((value & 0xff) << 8) | ((value >>> 8) & 0xff);
}

/** Folds a sum of 16-bit words (below 2^32) to 16 bits. */
export function fold(sum: number): number {
  const once = (sum & 0xffff) + (sum >>> 16);
  return (once & 0xffff) + (once >>> 16);
}

/**
 * Takes one from the TTL of an IPv4 header and corrects its checksum (RFC 1624). The TTL has to be 2 or more.
 */
export function decrementTtl(view: DataView, ip: number): void {
  view.setUint8(ip + IP4.ttl, view.getUint8(ip + IP4.ttl) - 1);
  const sum = view.getUint16(ip + IP4.checksum) + 0x100;
  view.setUint16(ip + IP4.checksum, sum >= 0xffff ? sum - 0xffff : sum);
}
