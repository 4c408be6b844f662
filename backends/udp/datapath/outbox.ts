import type { Family } from "../packet/address.ts";
import type { Arena } from "../packet/arena.ts";
import { EAGAIN, EINTR, EINVAL, EIO, EMSGSIZE } from "../system/errno.ts";
import { type Libc, pointerTo } from "../system/libc.ts";
import { SOCKET_ADDRESS_LENGTH } from "../system/socket-address.ts";
import type { UdpSocket } from "../system/sockets.ts";
import { COUNTER } from "./counters.ts";
import type { Oversize } from "./oversize.ts";
import type { PeerTable } from "./peer-table.ts";

/** Most messages of one sendmmsg(2). */
const MESSAGES = 64;
/** Pieces of all of them; a message has at most 2 × MOST_DATAGRAMS, far below the kernel's 1,024. */
const PIECES = 2_048;
/** UDP_MAX_SEGMENTS of older kernels (linux/udp.h). */
const MOST_DATAGRAMS = 64;
/** What one UDP_SEGMENT send may carry: 65,535 less IPv4 (or IPv6) and UDP headers, rounded down. */
const MOST_BYTES = 65_000;
/** sizeof(struct mmsghdr), sizeof(struct iovec), CMSG_SPACE(2). */
const MESSAGE_SIZE = 64;
const PIECE_SIZE = 16;
const CONTROL_SIZE = 24;
/** Words of struct msghdr: name, its length, pieces, their number, control, its length, flags. */
const [NAME, NAME_LENGTH, PIECE, PIECE_COUNT, CONTROL, CONTROL_LENGTH] = [0, 2, 4, 6, 8, 10] as const;
const SOL_UDP = 17;
const UDP_SEGMENT = 103;
const POLLOUT = 4;
/** How long a full socket buffer is waited for before datagrams are dropped, ms. */
const PATIENCE = 20;

/**
 * Datagrams on their way out of one socket. Neighbours of equal size to the same peer become one message, which the
 * kernel takes apart again; all messages go out in one call. Nothing is copied: pieces have to stay until the flush.
 */
export class Outbox {
  readonly #arena: Arena;
  readonly #libc: Libc;
  readonly #counters: Float64Array;
  readonly #oversize: Oversize;
  readonly #fd: number;
  readonly #nameLength: number;
  readonly #messages: number;
  readonly #pieces: number;
  readonly #controls: number;
  readonly #writable: Int16Array;
  readonly #endpoints = new Int32Array(MESSAGES);
  /** Size of all datagrams of a message but the last, which may be shorter. */
  readonly #sizes = new Int32Array(MESSAGES);
  readonly #firstPieces = new Int32Array(MESSAGES + 1);
  #mostDatagrams: number;
  #table: PeerTable;
  #count = 0;
  #pieceCount = 0;
  /** Of the last message. */
  #datagrams = 0;
  #bytes = 0;
  #closed = false;

  constructor(
    { arena, libc, counters, table, oversize }: OutboxParts,
    family: Family,
    { fd, segments }: UdpSocket,
  ) {
    this.#arena = arena;
    this.#libc = libc;
    this.#counters = counters;
    this.#table = table;
    this.#oversize = oversize;
    this.#fd = fd;
    this.#nameLength = SOCKET_ADDRESS_LENGTH[family];
    this.#mostDatagrams = segments ? MOST_DATAGRAMS : 1;
    this.#messages = arena.reserve(MESSAGES * MESSAGE_SIZE);
    this.#pieces = arena.reserve(PIECES * PIECE_SIZE);
    this.#controls = arena.reserve(MESSAGES * CONTROL_SIZE);
    this.#writable = new Int16Array(4);
    new Int32Array(this.#writable.buffer)[0] = fd;
    this.#writable[2] = POLLOUT;
    for (let n = 0; n < MESSAGES; n++) {
      const control = this.#controls + n * CONTROL_SIZE;
      arena.words.set([18, 0, SOL_UDP, UDP_SEGMENT], control >> 2);
      arena.putAddress(this.#messages + n * MESSAGE_SIZE + CONTROL * 4, control);
    }
  }

  /** Peers from now on; nothing may wait. */
  set table(table: PeerTable) {
    this.#table = table;
  }

  /**
   * Begins a datagram of `size` bytes to an endpoint; its one or two {@link piece}s follow. Returns false when there is
   * no room: flush, and try again.
   */
  begin(endpoint: number, size: number): boolean {
    if (this.#pieceCount + 2 > PIECES) return false;
    const last = this.#count - 1;
    if (
      last >= 0 &&
      !this.#closed &&
      this.#endpoints[last] === endpoint &&
      size <= (this.#sizes[last] ?? 0) &&
      this.#datagrams < this.#mostDatagrams &&
      this.#bytes + size <= MOST_BYTES
    ) {
      this.#closed = size < (this.#sizes[last] ?? 0);
      this.#datagrams += 1;
      this.#bytes += size;
      return true;
    }
    if (this.#count === MESSAGES) return false;
    this.#seal();
    this.#endpoints[this.#count] = endpoint;
    this.#sizes[this.#count] = size;
    this.#firstPieces[this.#count] = this.#pieceCount;
    this.#count += 1;
    this.#datagrams = 1;
    this.#bytes = size;
    this.#closed = false;
    return true;
  }

  /** A stretch of the arena that belongs to the datagram begun last. */
  piece(offset: number, length: number): void {
    const at = (this.#pieces + this.#pieceCount * PIECE_SIZE) >> 2;
    const { words, high } = this.#arena;
    words[at] = this.#arena.low(offset);
    words[at + 1] = high;
    words[at + 2] = length;
    words[at + 3] = 0;
    this.#pieceCount += 1;
  }

  /** Sends what waits. */
  flush(): void {
    if (this.#count === 0) return;
    this.#seal();
    this.#firstPieces[this.#count] = this.#pieceCount;
    this.#send(this.#count);
    this.#count = 0;
    this.#pieceCount = 0;
  }

  /** Completes the header of the last message. */
  #seal(): void {
    const last = this.#count - 1;
    if (last < 0) return;
    const { words, high } = this.#arena;
    const at = (this.#messages + last * MESSAGE_SIZE) >> 2;
    const first = this.#firstPieces[last] ?? 0;
    const endpoint = this.#endpoints[last] ?? 0;
    words[at + NAME] = this.#table.low(endpoint);
    words[at + NAME + 1] = this.#table.high(endpoint);
    words[at + NAME_LENGTH] = this.#nameLength;
    words[at + PIECE] = this.#arena.low(this.#pieces + first * PIECE_SIZE);
    words[at + PIECE + 1] = high;
    words[at + PIECE_COUNT] = this.#pieceCount - first;
    const several = this.#datagrams > 1;
    words[at + CONTROL_LENGTH] = several ? CONTROL_SIZE : 0;
    if (several) words[(this.#controls + last * CONTROL_SIZE + 16) >> 2] = this.#sizes[last] ?? 0;
    this.#counters[COUNTER.sentPackets] = (this.#counters[COUNTER.sentPackets] ?? 0) + this.#datagrams;
    this.#counters[COUNTER.sentBytes] = (this.#counters[COUNTER.sentBytes] ?? 0) + this.#bytes;
  }

  #send(count: number): void {
    let waited = false;
    for (let at = 0; at < count; ) {
      this.#counters[COUNTER.sends] = (this.#counters[COUNTER.sends] ?? 0) + 1;
      const messages = this.#arena.address(this.#messages + at * MESSAGE_SIZE);
      const sent = this.#libc.sendmmsg(this.#fd, messages, count - at, 0);
      if (sent > 0) {
        at += sent;
        continue;
      }
      const errno = this.#libc.errno();
      if (errno === EINTR) continue;
      if (errno === EAGAIN && !waited) {
        waited = true;
        this.#libc.poll(pointerTo(this.#writable), 1, PATIENCE);
        continue;
      }
      this.#giveUp(at, errno);
      at += 1;
    }
  }

  /** A message that the kernel does not take: one by one where that may help. */
  #giveUp(message: number, errno: number): void {
    const first = this.#firstPieces[message] ?? 0;
    const end = this.#firstPieces[message + 1] ?? 0;
    const endpoint = this.#endpoints[message] ?? 0;
    const address = this.#table.endpoint(endpoint).subarray(0, this.#nameLength);
    const several = end - first > 2 || this.#mostDatagrams > 1;
    // A device that does not compute checksums cannot take several datagrams at once (udp(7): EIO).
    if (errno === EIO) this.#mostDatagrams = 1;
    if (errno !== EMSGSIZE && !(several && (errno === EIO || errno === EINVAL))) {
      this.#oversize.countError(errno);
      return;
    }
    const size = this.#sizes[message] ?? 0;
    const { words } = this.#arena;
    for (let piece = first, filled = 0; piece < end; piece++) {
      const at = (this.#pieces + piece * PIECE_SIZE) >> 2;
      const length = words[at + 2] ?? 0;
      filled = this.#oversize.collect(((words[at] ?? 0) - this.#arena.low(0)) | 0, length, filled);
      if (filled < size && piece < end - 1) continue;
      this.#oversize.send(this.#fd, address, filled);
      filled = 0;
    }
  }
}

/** What every outbox shares. */
export interface OutboxParts {
  readonly arena: Arena;
  readonly libc: Libc;
  readonly counters: Float64Array;
  readonly table: PeerTable;
  readonly oversize: Oversize;
}
