import type { Family } from "../packet/address.ts";
import type { Arena } from "../packet/arena.ts";
import { decrementTtl, IP4, IP6 } from "../packet/ip.ts";
import { EAGAIN, EINTR } from "../system/errno.ts";
import { asPointer, type Libc } from "../system/libc.ts";
import { SOCKET_ADDRESS_ROOM } from "../system/socket-address.ts";
import type { UdpSocket } from "../system/sockets.ts";
import type { Coalescer } from "./coalescer.ts";
import { COUNTER } from "./counters.ts";
import type { IcmpReporter } from "./icmp.ts";
import type { PeerTable } from "./peer-table.ts";

/** Messages of one recvmmsg(2): few while they are large, so that they stay in the cache until they are written. */
const MOST_MESSAGES = 16;
const FEW_MESSAGES = 4;
/** Mean size from which few are asked for. */
const LARGE = 8_192;
/** Largest UDP payload, and room in front for the virtio header. The stride avoids one cache set for all messages. */
const LARGEST = 65_535;
const HEADROOM = 16;
const STRIDE = 65_536 + 1_088;
/** sizeof(struct mmsghdr), sizeof(struct iovec); room for one control message with an int, and more. */
const MESSAGE_SIZE = 64;
const PIECE_SIZE = 16;
const CONTROL_SIZE = 64;
/** Words of struct mmsghdr. */
const [NAME, NAME_LENGTH, PIECE, PIECE_COUNT, CONTROL, CONTROL_LENGTH, RECEIVED] = [
  0, 2, 4, 6, 8, 10, 14,
] as const;
const SOL_UDP = 17;
const UDP_GRO = 104;
/** sizeof(struct cmsghdr) and an int: what a control message has at least. */
const LEAST_CONTROL = 20;
const MSG_DONTWAIT = 0x40;
/** Calls in one turn: the other direction waits that long. */
const BUDGET = 4;

/** From the peers, through one socket, to the TUN device. */
export class Receiver {
  readonly #arena: Arena;
  readonly #libc: Libc;
  readonly #counters: Float64Array;
  readonly #icmp: IcmpReporter;
  readonly #coalescer: Coalescer;
  readonly #fd: number;
  readonly #version: 4 | 6;
  readonly #messages: number;
  readonly #names: number;
  readonly #controls: number;
  readonly #buffers: number;
  #table: PeerTable;
  #wanted = FEW_MESSAGES;
  /** Socket address words of the sender seen last, when it is a member. */
  #known = -1;

  constructor(parts: ReceiverParts, family: Family, { fd }: UdpSocket) {
    const { arena } = parts;
    this.#arena = arena;
    this.#libc = parts.libc;
    this.#counters = parts.counters;
    this.#icmp = parts.icmp;
    this.#coalescer = parts.coalescer;
    this.#table = parts.table;
    this.#fd = fd;
    this.#version = family === "ipv4" ? 4 : 6;
    this.#messages = arena.reserve(MOST_MESSAGES * MESSAGE_SIZE);
    // One more: the address of the last member.
    this.#names = arena.reserve((MOST_MESSAGES + 1) * SOCKET_ADDRESS_ROOM);
    this.#controls = arena.reserve(MOST_MESSAGES * CONTROL_SIZE);
    this.#buffers = arena.reserve(MOST_MESSAGES * STRIDE, 4_096) + HEADROOM;
    const pieces = arena.reserve(MOST_MESSAGES * PIECE_SIZE);
    for (let n = 0; n < MOST_MESSAGES; n++) {
      const message = this.#messages + n * MESSAGE_SIZE;
      const piece = pieces + n * PIECE_SIZE;
      arena.putAddress(message + NAME * 4, this.#names + n * SOCKET_ADDRESS_ROOM);
      arena.putAddress(message + PIECE * 4, piece);
      arena.words[(message >> 2) + PIECE_COUNT] = 1;
      arena.putAddress(message + CONTROL * 4, this.#controls + n * CONTROL_SIZE);
      arena.putAddress(piece, this.#buffers + n * STRIDE);
      arena.words[(piece >> 2) + 2] = LARGEST;
    }
  }

  /** Peers from now on. */
  set table(table: PeerTable) {
    this.#table = table;
    this.#known = -1;
  }

  /** Forwards what waits. Returns whether there may be more. */
  run(): boolean {
    for (let n = 0; n < BUDGET; n++) {
      const wanted = this.#wanted;
      const received = this.#receive(wanted);
      if (received <= 0) return false;
      let total = 0;
      for (let message = 0; message < received; message++) total += this.#take(message);
      this.#coalescer.flush();
      this.#wanted = total / received >= LARGE ? FEW_MESSAGES : MOST_MESSAGES;
      if (received < wanted) return false;
    }
    return true;
  }

  #receive(wanted: number): number {
    const { words } = this.#arena;
    for (let n = 0; n < wanted; n++) {
      const at = (this.#messages + n * MESSAGE_SIZE) >> 2;
      words[at + NAME_LENGTH] = SOCKET_ADDRESS_ROOM;
      words[at + CONTROL_LENGTH] = CONTROL_SIZE;
    }
    for (;;) {
      const messages = this.#arena.address(this.#messages);
      const received = this.#libc.recvmmsg(this.#fd, messages, wanted, MSG_DONTWAIT, asPointer(0));
      if (received >= 0) return received;
      const errno = this.#libc.errno();
      if (errno === EINTR) continue;
      if (errno === EAGAIN) return -1;
      // Nothing is tried again: what the socket reports once is gone with that, and the rest is polled for.
      this.#count(COUNTER.receiveErrors);
      this.#counters[COUNTER.receiveErrno] = errno;
      return -1;
    }
  }

  /** Takes the datagrams of a message; returns its bytes. */
  #take(message: number): number {
    const { words } = this.#arena;
    const at = (this.#messages + message * MESSAGE_SIZE) >> 2;
    const length = words[at + RECEIVED] ?? 0;
    if (!this.#isMember(this.#names + message * SOCKET_ADDRESS_ROOM)) {
      this.#count(COUNTER.strangers);
      return length;
    }
    const control = (this.#controls + message * CONTROL_SIZE) >> 2;
    const isSeveral =
      (words[at + CONTROL_LENGTH] ?? 0) >= LEAST_CONTROL &&
      words[control + 2] === SOL_UDP &&
      words[control + 3] === UDP_GRO;
    const size = isSeveral ? (words[control + 4] ?? 0) : length;
    const start = this.#buffers + message * STRIDE;
    const end = start + length;
    if (length === 0 || size === 0) this.#count(COUNTER.malformed);
    else for (let ip = start; ip < end; ip += size) this.#forward(ip, Math.min(size, end - ip));
    return length;
  }

  #forward(ip: number, length: number): void {
    const { bytes, view } = this.#arena;
    this.#count(COUNTER.receivedPackets);
    this.#counters[COUNTER.receivedBytes] = (this.#counters[COUNTER.receivedBytes] ?? 0) + length;
    if ((bytes[ip] ?? 0) >>> 4 !== this.#version) {
      this.#count(COUNTER.malformed);
      return;
    }
    if (this.#version === 4) {
      const header = ((bytes[ip] ?? 0) & 15) << 2;
      const total = view.getUint16(ip + IP4.totalLength);
      if (header < IP4.length || total < header || total > length) {
        this.#count(COUNTER.malformed);
        return;
      }
      if ((bytes[ip + IP4.ttl] ?? 0) <= 1) {
        this.#expire(ip, total);
        return;
      }
      decrementTtl(view, ip);
      this.#coalescer.offer(ip, total);
      return;
    }
    const total = length < IP6.length ? 0 : view.getUint16(ip + IP6.payloadLength) + IP6.length;
    if (total < IP6.length || total > length) {
      this.#count(COUNTER.malformed);
      return;
    }
    const hops = bytes[ip + IP6.hopLimit] ?? 0;
    if (hops <= 1) {
      this.#expire(ip, total);
      return;
    }
    bytes[ip + IP6.hopLimit] = hops - 1;
    this.#coalescer.offer(ip, total);
  }

  #expire(ip: number, length: number): void {
    this.#count(COUNTER.expired);
    this.#icmp.expired(ip, length);
  }

  /** Whether a socket address is a member's; the one seen last is known by heart. */
  #isMember(name: number): boolean {
    const { words, view } = this.#arena;
    const at = name >> 2;
    const last = (this.#names + MOST_MESSAGES * SOCKET_ADDRESS_ROOM) >> 2;
    const count = this.#version === 4 ? 2 : 6;
    if (this.#known >= 0) {
      let same = words[at] === words[last] && words[at + 1] === words[last + 1];
      // Of IPv6 the second word is the flow label, which is not set on receipt.
      for (let n = 2; n < count; n++) same = same && words[at + n] === words[last + n];
      if (same) return true;
    }
    const port = view.getUint16(name + 2);
    const member =
      this.#version === 4
        ? this.#table.isMember(view.getInt32(name + 4), 0, 0, 0, port)
        : this.#table.isMember(
            view.getInt32(name + 8),
            view.getInt32(name + 12),
            view.getInt32(name + 16),
            view.getInt32(name + 20),
            port,
          );
    if (!member) return false;
    for (let n = 0; n < count; n++) words[last + n] = words[at + n] ?? 0;
    this.#known = 1;
    return true;
  }

  #count(counter: number): void {
    this.#counters[counter] = (this.#counters[counter] ?? 0) + 1;
  }
}

/** What a receiver works with. */
export interface ReceiverParts {
  readonly arena: Arena;
  readonly libc: Libc;
  readonly counters: Float64Array;
  readonly icmp: IcmpReporter;
  readonly coalescer: Coalescer;
  readonly table: PeerTable;
}
