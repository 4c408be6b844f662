/** Packets written out by hand, to hold the data path's own arithmetic against. */

/** What a packet is made of; addresses as bytes, payload as bytes. */
export interface PacketSpec {
  readonly version: 4 | 6;
  readonly protocol: "tcp" | "udp";
  readonly payload: Uint8Array;
  readonly ttl?: number;
  readonly id?: number;
  readonly dontFragment?: boolean;
  readonly sequence?: number;
  readonly flags?: number;
  /** TCP options, a multiple of four bytes. */
  readonly options?: Uint8Array;
  readonly sourcePort?: number;
}

const SOURCE = { 4: [10, 5, 1, 2], 6: [0xfd, 0, 0, 5, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2] } as const;
const TARGET = { 4: [10, 5, 2, 2], 6: [0xfd, 0, 0, 5, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2] } as const;

/** A packet with all checksums complete. */
export function buildPacket(spec: PacketSpec): Uint8Array {
  const {
    version,
    protocol,
    payload,
    ttl = 64,
    id = 7,
    dontFragment = true,
    options = new Uint8Array(0),
  } = spec;
  const l4Header = protocol === "udp" ? 8 : 20 + options.length;
  const header = version === 4 ? 20 : 40;
  const packet = Buffer.alloc(header + l4Header + payload.length);
  const number = protocol === "udp" ? 17 : 6;
  if (version === 4) {
    packet[0] = 0x45;
    packet.writeUInt16BE(packet.length & 0xffff, 2);
    packet.writeUInt16BE(id, 4);
    packet.writeUInt16BE(dontFragment ? 0x4000 : 0, 6);
    packet.set([ttl, number], 8);
    packet.set([...SOURCE[4], ...TARGET[4]], 12);
    packet.writeUInt16BE(checksum([packet.subarray(0, 20)]), 10);
  } else {
    packet[0] = 0x60;
    packet.writeUInt16BE((packet.length - 40) & 0xffff, 4);
    packet.set([number, ttl], 6);
    packet.set([...SOURCE[6], ...TARGET[6]], 8);
  }
  const l4 = packet.subarray(header);
  l4.writeUInt16BE(spec.sourcePort ?? 1234, 0);
  l4.writeUInt16BE(4321, 2);
  if (protocol === "udp") {
    l4.writeUInt16BE(l4.length & 0xffff, 4);
  } else {
    l4.writeUInt32BE((spec.sequence ?? 1000) >>> 0, 4);
    l4.writeUInt32BE(99, 8);
    l4[12] = (l4Header / 4) << 4;
    l4[13] = spec.flags ?? 0x10;
    l4.writeUInt16BE(501, 14);
    l4.set(options, 20);
  }
  l4.set(payload, l4Header);
  const at = protocol === "udp" ? 6 : 16;
  const value = checksum([pseudoHeader(packet, l4.length), l4]);
  l4.writeUInt16BE(value === 0 && protocol === "udp" ? 0xffff : value, at);
  return packet;
}

/** What is wrong with the checksums and lengths of a packet; undefined when nothing is. */
export function findMistake(packet: Uint8Array): string | undefined {
  const bytes = Buffer.from(packet);
  const version = bytes[0]! >>> 4;
  const header = version === 4 ? 20 : 40;
  const stated = version === 4 ? bytes.readUInt16BE(2) : bytes.readUInt16BE(4) + 40;
  if (stated !== bytes.length) return `says ${stated} bytes, has ${bytes.length}`;
  if (version === 4 && checksum([bytes.subarray(0, 20)]) !== 0) return "wrong IP checksum";
  const l4 = bytes.subarray(header);
  if (protocolOf(bytes) === 17 && l4.readUInt16BE(4) !== l4.length) return "wrong UDP length";
  return checksum([pseudoHeader(bytes, l4.length), l4]) === 0 ? undefined : "wrong TCP or UDP checksum";
}

/** RFC 1071, slowly: over pieces of even length. */
export function checksum(pieces: readonly Uint8Array[]): number {
  let sum = 0;
  for (const piece of pieces) {
    for (let at = 0; at < piece.length; at += 2) sum += (piece[at]! << 8) | (piece[at + 1] ?? 0);
  }
  while (sum > 0xffff) sum = (sum & 0xffff) + Math.floor(sum / 0x10000);
  return ~sum & 0xffff;
}

/** Addresses, protocol and length, as TCP and UDP checksums cover them. */
export function pseudoHeader(packet: Buffer, length: number): Uint8Array {
  const addresses = packet[0]! >>> 4 === 4 ? packet.subarray(12, 20) : packet.subarray(8, 40);
  const tail = Buffer.alloc(8);
  tail.writeUInt32BE(length, 0);
  tail.writeUInt32BE(protocolOf(packet), 4);
  return Buffer.concat([addresses, tail]);
}

function protocolOf(packet: Buffer): number {
  return packet[0]! >>> 4 === 4 ? packet[9]! : packet[6]!;
}
