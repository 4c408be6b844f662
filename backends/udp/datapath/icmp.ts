import type { Arena } from "../packet/arena.ts";
import type { Sum } from "../packet/checksum.ts";
import { FRAGMENTED, IP4, IP6, PROTOCOL, swap16 } from "../packet/ip.ts";
import { type Libc, pointerTo } from "../system/libc.ts";
import { COUNTER } from "./counters.ts";
import type { Pace } from "./pace.ts";

/** Type and code of the messages sent here (RFC 792, RFC 1191; RFC 4443). */
const ICMP4 = { noRoute: [3, 0], tooBig: [3, 4], expired: [11, 0] } as const;
const ICMP6 = { noRoute: [1, 0], tooBig: [2, 0], expired: [3, 0] } as const;
type Cause = keyof typeof ICMP4;

/** Longest messages: RFC 1812 §4.3.2.3, RFC 4443 §2.4 (c). */
const MOST_BYTES = { ipv4: 576, ipv6: 1_280 } as const;
const ICMP_HEADER = 8;
const TTL = 64;
/** ICMP types that ask or answer; all others are errors, and no error is sent about an error. */
const NO_ERRORS4 = new Set([0, 8, 9, 10, 13, 14, 17, 18]);
const FIRST_NON_ERROR6 = 128;

/** Where messages go out and what they say of us. */
export interface IcmpOptions {
  /** Raw sockets; -1 for none. */
  readonly raw4: number;
  readonly raw6: number;
  /** Our addresses on the tunnel as words. */
  readonly source4?: readonly number[] | undefined;
  readonly source6?: readonly number[] | undefined;
}

/**
 * Tells senders why their packet goes nowhere. Messages leave through a raw socket like anything this host sends, so
 * they find their way to pods and, through the tunnel, to other hosts.
 */
export class IcmpReporter {
  readonly #arena: Arena;
  readonly #libc: Libc;
  readonly #sum: Sum;
  readonly #counters: Float64Array;
  readonly #options: IcmpOptions;
  readonly #pace: Pace;
  readonly #message: number;
  readonly #name4 = new Uint8Array(16);
  readonly #name6 = new Uint8Array(28);

  constructor(parts: IcmpParts, options: IcmpOptions) {
    this.#arena = parts.arena;
    this.#libc = parts.libc;
    this.#sum = parts.sum;
    this.#counters = parts.counters;
    this.#pace = parts.pace;
    this.#options = options;
    this.#message = this.#arena.reserve(2_048);
    this.#name4[0] = 2;
    this.#name6[0] = 10;
  }

  /** Destination (network) unreachable: no peer has that address. */
  noRoute(ip: number, length: number): void {
    this.#report("noRoute", ip, length, 0);
  }

  /** Time exceeded. */
  expired(ip: number, length: number): void {
    this.#report("expired", ip, length, 0);
  }

  /** Fragmentation needed, packet too big: `mtu` is what fits. */
  tooBig(ip: number, length: number, mtu: number): void {
    this.#report("tooBig", ip, length, mtu);
  }

  #report(cause: Cause, ip: number, length: number, mtu: number): void {
    const isIpv6 = this.#arena.view.getUint8(ip) >>> 4 === 6;
    const deserves = isIpv6 ? this.#deserves6(ip, length) : this.#deserves4(ip, length);
    if (!deserves || !this.#pace.take()) return;
    const sent = isIpv6 ? this.#send6(cause, ip, length, mtu) : this.#send4(cause, ip, length, mtu);
    if (sent) this.#counters[COUNTER.icmpSent] = (this.#counters[COUNTER.icmpSent] ?? 0) + 1;
  }

  /** RFC 1122 §3.2.2: not about errors, later fragments, or packets without a single sender. */
  #deserves4(ip: number, length: number): boolean {
    const { view } = this.#arena;
    const header = (view.getUint8(ip) & 15) << 2;
    if (length < header + 8 || (view.getUint16(ip + IP4.fragment) & FRAGMENTED & 0x1fff) !== 0) return false;
    const source = view.getUint8(ip + IP4.source);
    if (source === 0 || source === 127 || source >= 224) return false;
    return view.getUint8(ip + IP4.protocol) !== PROTOCOL.icmp || NO_ERRORS4.has(view.getUint8(ip + header));
  }

  #deserves6(ip: number, length: number): boolean {
    const { view } = this.#arena;
    if (length < IP6.length + 8 || view.getUint8(ip + IP6.source) === 0xff) return false;
    const source = [0, 4, 8, 12].map((at) => view.getInt32(ip + IP6.source + at));
    if (source.every((word) => word === 0)) return false;
    const isIcmp = view.getUint8(ip + IP6.nextHeader) === PROTOCOL.icmp6;
    return !isIcmp || view.getUint8(ip + IP6.length) >= FIRST_NON_ERROR6;
  }

  #send4(cause: Cause, ip: number, length: number, mtu: number): boolean {
    const { raw4, source4 } = this.#options;
    if (raw4 < 0 || !source4) return false;
    const { view, bytes } = this.#arena;
    const out = this.#message;
    const quoted = Math.min(length, MOST_BYTES.ipv4 - IP4.length - ICMP_HEADER);
    const total = IP4.length + ICMP_HEADER + quoted;
    bytes.fill(0, out, out + IP4.length + ICMP_HEADER);
    view.setUint8(out, 0x45);
    view.setUint16(out + IP4.totalLength, total);
    view.setUint8(out + IP4.ttl, TTL);
    view.setUint8(out + IP4.protocol, PROTOCOL.icmp);
    view.setInt32(out + IP4.source, source4[0] ?? 0);
    view.setInt32(out + IP4.destination, view.getInt32(ip + IP4.source));
    const icmp = out + IP4.length;
    const [type, code] = ICMP4[cause];
    view.setUint8(icmp, type);
    view.setUint8(icmp + 1, code);
    view.setUint16(icmp + 6, mtu);
    bytes.copyWithin(icmp + ICMP_HEADER, ip, ip + quoted);
    view.setUint16(icmp + 2, ~this.#sum(icmp, total - IP4.length, 0) & 0xffff, true);
    // The kernel fills in the checksum of the IP header (raw(7)).
    this.#name4.set(bytes.subarray(out + IP4.destination, out + IP4.length), 4);
    return this.#send(raw4, total, this.#name4);
  }

  #send6(cause: Cause, ip: number, length: number, mtu: number): boolean {
    const { raw6, source6 } = this.#options;
    if (raw6 < 0 || !source6) return false;
    const { view, bytes } = this.#arena;
    const out = this.#message;
    const quoted = Math.min(length, MOST_BYTES.ipv6 - IP6.length - ICMP_HEADER);
    const payload = ICMP_HEADER + quoted;
    bytes.fill(0, out, out + IP6.length + ICMP_HEADER);
    view.setUint8(out, 0x60);
    view.setUint16(out + IP6.payloadLength, payload);
    view.setUint8(out + IP6.nextHeader, PROTOCOL.icmp6);
    view.setUint8(out + IP6.hopLimit, TTL);
    source6.forEach((word, n) => {
      view.setInt32(out + IP6.source + 4 * n, word);
    });
    bytes.copyWithin(out + IP6.destination, ip + IP6.source, ip + IP6.destination);
    const icmp = out + IP6.length;
    const [type, code] = ICMP6[cause];
    view.setUint8(icmp, type);
    view.setUint8(icmp + 1, code);
    view.setUint32(icmp + 4, mtu);
    bytes.copyWithin(icmp + ICMP_HEADER, ip, ip + quoted);
    const pseudo = swap16(PROTOCOL.icmp6) + swap16(payload);
    view.setUint16(icmp + 2, ~this.#sum(out + IP6.source, 32 + payload, pseudo) & 0xffff, true);
    this.#name6.set(bytes.subarray(out + IP6.destination, out + IP6.length), 8);
    return this.#send(raw6, IP6.length + payload, this.#name6);
  }

  #send(fd: number, length: number, name: Uint8Array): boolean {
    const message = this.#arena.address(this.#message);
    return this.#libc.sendto(fd, message, length, 0, pointerTo(name), name.length) >= 0;
  }
}

/** What a reporter works with. */
export interface IcmpParts {
  readonly arena: Arena;
  readonly libc: Libc;
  readonly sum: Sum;
  readonly counters: Float64Array;
  readonly pace: Pace;
}
