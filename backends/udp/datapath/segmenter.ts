import type { Arena } from "../packet/arena.ts";
import type { Sum } from "../packet/checksum.ts";
import { fold, IP4, IP6, PROTOCOL, swap16, TCP, TCP_FLAG, UDP } from "../packet/ip.ts";
import type { Outbox } from "./outbox.ts";

/** Room for the headers of one flush. */
const ROOM = 64 * 1024;
/** Longest headers of one packet: IPv6 with extensions, and TCP with options. */
const LONGEST_HEADERS = 512;

/** Where segments go. */
export type SegmentSink = Pick<Outbox, "begin" | "piece">;

/**
 * Cuts a large packet into the ones that go over the wire: each gets its own headers with complete checksums, the
 * payload stays where it is. What a network card does for TSO and USO.
 */
export class Segmenter {
  readonly #arena: Arena;
  readonly #sum: Sum;
  readonly #flush: () => void;
  readonly #start: number;
  readonly #end: number;
  #cursor: number;

  /** @param flush sends what waits, of both families, and calls {@link reset}. */
  constructor(arena: Arena, sum: Sum, flush: () => void) {
    this.#arena = arena;
    this.#sum = sum;
    this.#flush = flush;
    this.#start = arena.reserve(ROOM);
    this.#end = this.#start + ROOM;
    this.#cursor = this.#start;
  }

  /** The headers handed out so far are not needed any more. */
  reset(): void {
    this.#cursor = this.#start;
  }

  /**
   * Puts all segments of the packet at `ip` into the outbox, flushing as often as there is no room. TCP or UDP begins
   * `start` bytes into it; each segment but the last has `size` bytes of payload. Returns false for a malformed packet.
   * (Single arguments: an object would be garbage.)
   */
  segment(
    outbox: SegmentSink,
    endpoint: number,
    ip: number,
    length: number,
    start: number,
    size: number,
    isUdp: boolean,
  ): boolean {
    const { view, bytes } = this.#arena;
    const l4 = ip + start;
    const l4Header = isUdp ? UDP.headerLength : ((bytes[l4 + TCP.dataOffset] ?? 0) >>> 4) << 2;
    const headers = start + l4Header;
    const isIpv4 = (bytes[ip] ?? 0) >>> 4 === 4;
    if (size === 0 || headers > LONGEST_HEADERS || headers >= length || start < IP4.length) return false;
    if (!isUdp && l4Header < TCP.length) return false;
    const checksum = isUdp ? UDP.checksum : TCP.checksum;
    const sequence = isUdp ? 0 : view.getInt32(l4 + TCP.sequence);
    const flags = isUdp ? 0 : (bytes[l4 + TCP.flags] ?? 0);
    const offsetByte = bytes[l4 + TCP.dataOffset] ?? 0;
    const id = view.getUint16(ip + IP4.id);
    const ipBase = isIpv4 ? this.#clearIpv4(ip, start) : 0;
    const l4Base = this.#clearL4(ip, l4, l4Header, isIpv4, isUdp);
    for (let at = 0, n = 0; headers + at < length; at += size, n++) {
      const payload = Math.min(size, length - headers - at);
      const isLast = headers + at + payload >= length;
      const l4Length = l4Header + payload;
      if (this.#cursor + headers > this.#end || !outbox.begin(endpoint, headers + payload)) {
        // The template is still in front of the payload.
        this.#flush();
        outbox.begin(endpoint, headers + payload);
      }
      const out = this.#copy(ip, headers);
      if (isIpv4) {
        const total = headers + payload;
        const identification = (id + n) & 0xffff;
        view.setUint16(out + IP4.totalLength, total);
        view.setUint16(out + IP4.id, identification);
        const sum = fold(ipBase + swap16(total) + swap16(identification));
        view.setUint16(out + IP4.checksum, ~sum & 0xffff, true);
      } else {
        view.setUint16(out + IP6.payloadLength, headers - IP6.length + payload);
      }
      const outL4 = out + start;
      let partial = l4Base + swap16(l4Length);
      if (isUdp) {
        view.setUint16(outL4 + UDP.length, l4Length);
        partial += swap16(l4Length);
      } else {
        const number = (sequence + at) | 0;
        let set = flags;
        if (!isLast) set &= ~(TCP_FLAG.fin | TCP_FLAG.psh);
        if (n > 0) set &= ~TCP_FLAG.cwr;
        view.setInt32(outL4 + TCP.sequence, number);
        view.setUint16(outL4 + TCP.dataOffset, offsetByte | (set << 8), true);
        partial += swap16(number >>> 16) + swap16(number & 0xffff) + (offsetByte | (set << 8));
      }
      const from = ip + headers + at;
      const value = ~this.#sum(from, payload, partial) & 0xffff;
      view.setUint16(outL4 + checksum, value === 0 && isUdp ? 0xffff : value, true);
      outbox.piece(out, headers);
      outbox.piece(from, payload);
    }
    return true;
  }

  /** Copies the headers of a packet to where they stay until the flush; returns the place. */
  #copy(ip: number, headers: number): number {
    const { words } = this.#arena;
    const out = this.#cursor;
    this.#cursor = (out + headers + 3) & -4;
    const from = ip >> 2;
    const to = out >> 2;
    const count = (headers + 3) >> 2;
    for (let n = 0; n < count; n++) words[to + n] = words[from + n] ?? 0;
    return out;
  }

  /** Sum of an IPv4 header without what differs between segments. */
  #clearIpv4(ip: number, length: number): number {
    const { view } = this.#arena;
    view.setUint16(ip + IP4.totalLength, 0);
    view.setUint16(ip + IP4.id, 0);
    view.setUint16(ip + IP4.checksum, 0);
    return this.#sum(ip, length, 0);
  }

  /** Sum of pseudo header and TCP or UDP header without what differs between segments. */
  #clearL4(ip: number, l4: number, l4Header: number, isIpv4: boolean, isUdp: boolean): number {
    const { view } = this.#arena;
    if (isUdp) {
      view.setUint16(l4 + UDP.length, 0);
      view.setUint16(l4 + UDP.checksum, 0);
    } else {
      view.setUint32(l4 + TCP.sequence, 0);
      view.setUint16(l4 + TCP.dataOffset, 0);
      view.setUint16(l4 + TCP.checksum, 0);
    }
    const protocol = swap16(isUdp ? PROTOCOL.udp : PROTOCOL.tcp);
    const addresses = isIpv4
      ? this.#sum(ip + IP4.source, 8, protocol)
      : this.#sum(ip + IP6.source, 32, protocol);
    return this.#sum(l4, l4Header, addresses);
  }
}
