import type { Family } from "../packet/address.ts";
import type { Arena } from "../packet/arena.ts";
import { DONT_FRAGMENT, IP4 } from "../packet/ip.ts";
import { EINTR, EMSGSIZE } from "../system/errno.ts";
import { type Libc, pointerTo } from "../system/libc.ts";
import { FRAGMENT, pathMtu, REFUSE, setDiscovery } from "../system/sockets.ts";
import { COUNTER } from "./counters.ts";
import type { IcmpReporter } from "./icmp.ts";

/** Outer IP and UDP headers. */
const OVERHEAD = { ipv4: 28, ipv6: 48 } as const;
/** Below this a link has to fragment by itself (RFC 8200 §5). */
const LEAST_IPV6_MTU = 1_280;
const LARGEST = 65_536;

/**
 * Datagrams that the kernel did not take as they were, one by one. One that does not fit the path goes out in
 * fragments when its packet allows that; else its sender is told the size that fits. Rare, so it may copy.
 */
export class Oversize {
  readonly #arena: Arena;
  readonly #libc: Libc;
  readonly #counters: Float64Array;
  readonly #icmp: IcmpReporter;
  readonly #scratch: number;

  constructor(arena: Arena, libc: Libc, counters: Float64Array, icmp: IcmpReporter) {
    this.#arena = arena;
    this.#libc = libc;
    this.#counters = counters;
    this.#icmp = icmp;
    this.#scratch = arena.reserve(LARGEST);
  }

  /** Appends a piece to the datagram that is being put together; returns its length then. */
  collect(offset: number, length: number, filled: number): number {
    this.#arena.bytes.copyWithin(this.#scratch + filled, offset, offset + length);
    return filled + length;
  }

  /** Sends the `length` bytes collected to a socket address. */
  send(fd: number, address: Uint8Array, length: number): void {
    const errno = this.#sendOnce(fd, address, length);
    if (errno === EMSGSIZE) this.#sendTooLarge(fd, address, length);
    else if (errno !== 0) this.countError(errno);
  }

  /** Notes a datagram that is lost. */
  countError(errno: number): void {
    this.#count(COUNTER.sendErrors);
    this.#counters[COUNTER.sendErrno] = errno;
  }

  #sendTooLarge(fd: number, address: Uint8Array, length: number): void {
    const family: Family = address.length === 16 ? "ipv4" : "ipv6";
    const mtu = (pathMtu(family, address) ?? 0) - OVERHEAD[family];
    if (this.#mayFragment(mtu)) {
      setDiscovery(fd, family, FRAGMENT);
      const errno = this.#sendOnce(fd, address, length);
      setDiscovery(fd, family, REFUSE);
      if (errno === 0) this.#count(COUNTER.fragmented);
      else this.countError(errno);
      return;
    }
    this.#count(COUNTER.tooBig);
    this.#icmp.tooBig(this.#scratch, length, mtu);
  }

  #mayFragment(mtu: number): boolean {
    const { view } = this.#arena;
    const isIpv6 = view.getUint8(this.#scratch) >>> 4 === 6;
    if (isIpv6) return mtu < LEAST_IPV6_MTU;
    return (view.getUint16(this.#scratch + IP4.fragment) & DONT_FRAGMENT) === 0 || mtu <= 0;
  }

  #sendOnce(fd: number, address: Uint8Array, length: number): number {
    for (;;) {
      const bytes = this.#arena.address(this.#scratch);
      if (this.#libc.sendto(fd, bytes, length, 0, pointerTo(address), address.length) >= 0) return 0;
      const errno = this.#libc.errno();
      if (errno !== EINTR) return errno;
    }
  }

  #count(counter: number): void {
    this.#counters[counter] = (this.#counters[counter] ?? 0) + 1;
  }
}
