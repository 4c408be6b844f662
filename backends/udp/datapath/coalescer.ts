import type { Arena } from "../packet/arena.ts";
import type { Sum } from "../packet/checksum.ts";
import { DONT_FRAGMENT, FRAGMENTED, IP4, IP6, PROTOCOL, swap16, TCP, TCP_FLAG, UDP } from "../packet/ip.ts";
import { GSO, NEEDS_CHECKSUM, VNET } from "../packet/virtio.ts";
import { VNET_HEADER_LENGTH } from "../system/tun.ts";
import { COUNTER } from "./counters.ts";
import type { TunWriter } from "./tun-writer.ts";

/** Most bytes of a packet (its length field has 16 bits), and most datagrams of a UDP one (UDP_MAX_SEGMENTS). */
const MOST_BYTES = 65_535;
const MOST_SEGMENTS = 64;

/**
 * Joins packets of one flow that follow each other into one large packet, as a network card with GRO does: TCP segments
 * in sequence, UDP datagrams of equal size. Only packets whose checksums are right are joined, so none is hidden.
 * Payloads stay where they are until the flush.
 */
export class Coalescer {
  readonly #arena: Arena;
  readonly #sum: Sum;
  readonly #counters: Float64Array;
  readonly #writer: PacketSink;
  readonly #joinsTcp: boolean;
  readonly #joinsUdp: boolean;
  /** First packet of what is being joined, -1 for none, and its shape. */
  #first = -1;
  #l4 = 0;
  #headers = 0;
  #isUdp = false;
  #total = 0;
  #segment = 0;
  #count = 0;
  #sequence = 0;
  #closed = false;

  constructor(parts: CoalescerParts, joins: { readonly tcp: boolean; readonly udp: boolean }) {
    this.#arena = parts.arena;
    this.#sum = parts.sum;
    this.#counters = parts.counters;
    this.#writer = parts.writer;
    this.#joinsTcp = joins.tcp;
    this.#joinsUdp = joins.udp;
  }

  /** Takes a packet over: joined, kept for the next one, or written at once. The order of packets stays. */
  offer(ip: number, length: number): void {
    const l4 = this.#l4Of(ip, length);
    const protocol = l4 === 0 ? 0 : this.#protocolOf(ip, l4);
    if (protocol === PROTOCOL.tcp && this.#joinsTcp && this.#offerTcp(ip, l4, length)) return;
    if (protocol === PROTOCOL.udp && this.#joinsUdp && this.#offerUdp(ip, l4, length)) return;
    this.flush();
    this.#writer.write(ip, length);
  }

  /** Writes what is kept. */
  flush(): void {
    const first = this.#first;
    if (first < 0) return;
    this.#first = -1;
    if (this.#count > 1) this.#describe(first);
    this.#writer.writePieces();
  }

  /** Where TCP or UDP begins in a packet that may be joined at all: no options, no fragment; else 0. */
  #l4Of(ip: number, length: number): number {
    const { bytes, view } = this.#arena;
    if (bytes[ip] === 0x45) {
      const isWhole = (view.getUint16(ip + IP4.fragment) & FRAGMENTED) === 0;
      return isWhole && view.getUint16(ip + IP4.totalLength) === length ? IP4.length : 0;
    }
    if ((bytes[ip] ?? 0) >>> 4 !== 6 || length < IP6.length) return 0;
    return view.getUint16(ip + IP6.payloadLength) + IP6.length === length ? IP6.length : 0;
  }

  #protocolOf(ip: number, l4: number): number {
    return this.#arena.bytes[ip + (l4 === IP4.length ? IP4.protocol : IP6.nextHeader)] ?? 0;
  }

  #offerTcp(ip: number, l4: number, length: number): boolean {
    const { bytes, view } = this.#arena;
    const tcp = ip + l4;
    if (length < l4 + TCP.length) return false;
    const flags = bytes[tcp + TCP.flags] ?? 0;
    const headers = l4 + (((bytes[tcp + TCP.dataOffset] ?? 0) >>> 4) << 2);
    const payload = length - headers;
    if ((flags & ~TCP_FLAG.psh) !== TCP_FLAG.ack || headers < l4 + TCP.length || payload <= 0) return false;
    if (!this.#isIntact(ip, l4, length, PROTOCOL.tcp)) return false;
    const sequence = view.getInt32(tcp + TCP.sequence);
    const isPushed = (flags & TCP_FLAG.psh) !== 0;
    if (
      this.#fits(ip, l4, headers, payload, false) &&
      sequence === this.#sequence &&
      this.#sameTcp(ip + l4, headers - l4)
    ) {
      this.#join(ip, headers, payload);
      if (isPushed) bytes[this.#first + l4 + TCP.flags] = TCP_FLAG.ack | TCP_FLAG.psh;
    } else {
      this.#begin(ip, l4, headers, length, false);
    }
    this.#sequence = (sequence + payload) | 0;
    if (isPushed) this.#closed = true;
    return true;
  }

  #offerUdp(ip: number, l4: number, length: number): boolean {
    const { view } = this.#arena;
    const udp = ip + l4;
    const headers = l4 + UDP.headerLength;
    const payload = length - headers;
    if (payload <= 0 || view.getUint16(udp + UDP.length) !== length - l4) return false;
    if (view.getUint16(udp + UDP.checksum) === 0 || !this.#isIntact(ip, l4, length, PROTOCOL.udp))
      return false;
    const joins =
      this.#fits(ip, l4, headers, payload, true) &&
      this.#count < MOST_SEGMENTS &&
      view.getInt32(udp) === view.getInt32(this.#first + l4);
    if (joins) this.#join(ip, headers, payload);
    else this.#begin(ip, l4, headers, length, true);
    return true;
  }

  /** Whether all checksums are right. Addresses precede TCP and UDP: one sum covers both with the pseudo header. */
  #isIntact(ip: number, l4: number, length: number, protocol: number): boolean {
    const isIpv4 = l4 === IP4.length;
    const from = ip + (isIpv4 ? IP4.source : IP6.source);
    const sum = this.#sum(from, ip + length - from, swap16(protocol) + swap16(length - l4));
    if (sum === 0xffff && (!isIpv4 || this.#sum(ip, IP4.length, 0) === 0xffff)) return true;
    this.#counters[COUNTER.badChecksums] = (this.#counters[COUNTER.badChecksums] ?? 0) + 1;
    return false;
  }

  #fits(ip: number, l4: number, headers: number, payload: number, isUdp: boolean): boolean {
    return (
      this.#first >= 0 &&
      !this.#closed &&
      this.#writer.hasRoom &&
      this.#isUdp === isUdp &&
      this.#l4 === l4 &&
      this.#headers === headers &&
      payload <= this.#segment &&
      this.#total + payload <= MOST_BYTES &&
      (l4 === IP4.length ? this.#sameIpv4(ip) : this.#sameIpv6(ip))
    );
  }

  /** Addresses, TOS, TTL and DF; without DF the identification has to count up, as a sender's does. */
  #sameIpv4(ip: number): boolean {
    const { bytes, view } = this.#arena;
    const first = this.#first;
    const fragment = view.getUint16(ip + IP4.fragment);
    return (
      view.getInt32(ip + IP4.source) === view.getInt32(first + IP4.source) &&
      view.getInt32(ip + IP4.destination) === view.getInt32(first + IP4.destination) &&
      bytes[ip + IP4.tos] === bytes[first + IP4.tos] &&
      bytes[ip + IP4.ttl] === bytes[first + IP4.ttl] &&
      fragment === view.getUint16(first + IP4.fragment) &&
      ((fragment & DONT_FRAGMENT) !== 0 ||
        view.getUint16(ip + IP4.id) === ((view.getUint16(first + IP4.id) + this.#count) & 0xffff))
    );
  }

  /** Addresses, traffic class, flow label and hop limit. */
  #sameIpv6(ip: number): boolean {
    const { bytes, view } = this.#arena;
    const first = this.#first;
    if (
      view.getInt32(ip) !== view.getInt32(first) ||
      bytes[ip + IP6.hopLimit] !== bytes[first + IP6.hopLimit]
    ) {
      return false;
    }
    for (let at = IP6.source; at < IP6.length; at += 4) {
      if (view.getInt32(ip + at) !== view.getInt32(first + at)) return false;
    }
    return true;
  }

  /** Ports, acknowledgement, window and options. */
  #sameTcp(tcp: number, header: number): boolean {
    const { view } = this.#arena;
    const first = this.#first + this.#l4;
    if (
      view.getInt32(tcp) !== view.getInt32(first) ||
      view.getInt32(tcp + TCP.acknowledgement) !== view.getInt32(first + TCP.acknowledgement) ||
      view.getUint16(tcp + TCP.window) !== view.getUint16(first + TCP.window)
    ) {
      return false;
    }
    for (let at = TCP.length; at < header; at += 4) {
      if (view.getInt32(tcp + at) !== view.getInt32(first + at)) return false;
    }
    return true;
  }

  #begin(ip: number, l4: number, headers: number, length: number, isUdp: boolean): void {
    this.flush();
    this.#first = ip;
    this.#l4 = l4;
    this.#headers = headers;
    this.#isUdp = isUdp;
    this.#total = length;
    this.#segment = length - headers;
    this.#count = 1;
    this.#closed = false;
    this.#writer.begin(ip, length);
  }

  #join(ip: number, headers: number, payload: number): void {
    this.#writer.piece(ip + headers, payload);
    this.#total += payload;
    this.#count += 1;
    if (payload < this.#segment) this.#closed = true;
  }

  /** Makes the first packet's headers those of the whole, with the checksum left to the kernel. */
  #describe(ip: number): void {
    const { bytes, view } = this.#arena;
    const isIpv4 = this.#l4 === IP4.length;
    const l4 = ip + this.#l4;
    const length = this.#total - this.#l4;
    if (isIpv4) {
      view.setUint16(ip + IP4.totalLength, this.#total);
      view.setUint16(ip + IP4.checksum, 0);
      view.setUint16(ip + IP4.checksum, ~this.#sum(ip, IP4.length, 0) & 0xffff, true);
    } else {
      view.setUint16(ip + IP6.payloadLength, length);
    }
    if (this.#isUdp) view.setUint16(l4 + UDP.length, length);
    const offset = this.#isUdp ? UDP.checksum : TCP.checksum;
    const pseudo = swap16(this.#isUdp ? PROTOCOL.udp : PROTOCOL.tcp) + swap16(length);
    const addresses = isIpv4 ? this.#sum(ip + IP4.source, 8, pseudo) : this.#sum(ip + IP6.source, 32, pseudo);
    view.setUint16(l4 + offset, addresses, true);
    const header = ip - VNET_HEADER_LENGTH;
    bytes[header + VNET.flags] = NEEDS_CHECKSUM;
    bytes[header + VNET.gsoType] = this.#isUdp ? GSO.udp : isIpv4 ? GSO.tcp4 : GSO.tcp6;
    view.setUint16(header + VNET.headerLength, this.#headers, true);
    view.setUint16(header + VNET.gsoSize, this.#segment, true);
    view.setUint16(header + VNET.checksumStart, this.#l4, true);
    view.setUint16(header + VNET.checksumOffset, offset, true);
  }
}

/** Where packets go. */
export type PacketSink = Pick<TunWriter, "write" | "begin" | "piece" | "writePieces" | "hasRoom">;

/** What a coalescer works with. */
export interface CoalescerParts {
  readonly arena: Arena;
  readonly sum: Sum;
  readonly counters: Float64Array;
  readonly writer: PacketSink;
}
