import type { Arena } from "../packet/arena.ts";
import { EBADFD, EINTR } from "../system/errno.ts";
import type { Libc } from "../system/libc.ts";
import { type Tun, VNET_HEADER_LENGTH } from "../system/tun.ts";
import { COUNTER } from "./counters.ts";
import { DeviceError } from "./device-error.ts";

/** Pieces of one packet: no packet has more bytes than that, and the kernel takes 1,024. */
const MOST_PIECES = 1_000;
/** sizeof(struct iovec). */
const PIECE_SIZE = 16;

/** Writes packets to the TUN device, whole or in pieces that lie apart. There have to be 10 bytes before each packet. */
export class TunWriter {
  readonly #arena: Arena;
  readonly #libc: Libc;
  readonly #counters: Float64Array;
  readonly #fd: number;
  readonly #header: number;
  readonly #pieces: number;
  #count = 0;

  constructor(arena: Arena, libc: Libc, counters: Float64Array, { fd, vnetHeader }: Tun) {
    this.#arena = arena;
    this.#libc = libc;
    this.#counters = counters;
    this.#fd = fd;
    this.#header = vnetHeader ? VNET_HEADER_LENGTH : 0;
    this.#pieces = arena.reserve(MOST_PIECES * PIECE_SIZE);
  }

  /** Whether another {@link piece} has room. */
  get hasRoom(): boolean {
    return this.#count < MOST_PIECES;
  }

  /** Writes a whole packet at once. */
  write(ip: number, length: number): void {
    this.#clearHeader(ip);
    const from = this.#arena.address(ip - this.#header);
    for (;;) {
      const written = this.#libc.write(this.#fd, from, length + this.#header);
      if (written >= 0 || this.#libc.errno() !== EINTR) {
        this.#note(written);
        return;
      }
    }
  }

  /** Begins a packet of pieces. */
  begin(ip: number, length: number): void {
    this.#clearHeader(ip);
    this.#count = 0;
    this.piece(ip - this.#header, length + this.#header);
  }

  /** Adds to the packet begun last. */
  piece(offset: number, length: number): void {
    const at = (this.#pieces + this.#count * PIECE_SIZE) >> 2;
    const { words, high } = this.#arena;
    words[at] = this.#arena.low(offset);
    words[at + 1] = high;
    words[at + 2] = length;
    words[at + 3] = 0;
    this.#count += 1;
  }

  /** Writes the packet begun last. */
  writePieces(): void {
    const pieces = this.#arena.address(this.#pieces);
    for (;;) {
      const written = this.#libc.writev(this.#fd, pieces, this.#count);
      if (written >= 0 || this.#libc.errno() !== EINTR) {
        this.#note(written);
        return;
      }
    }
  }

  /** A virtio header that asks for nothing. */
  #clearHeader(ip: number): void {
    if (this.#header === 0) return;
    const { view } = this.#arena;
    view.setUint32(ip - 10, 0);
    view.setUint32(ip - 6, 0);
    view.setUint16(ip - 2, 0);
  }

  #note(written: number): void {
    const counters = this.#counters;
    if (written >= 0) {
      counters[COUNTER.writes] = (counters[COUNTER.writes] ?? 0) + 1;
      return;
    }
    const errno = this.#libc.errno();
    if (errno === EBADFD) throw new DeviceError(errno);
    counters[COUNTER.writeErrors] = (counters[COUNTER.writeErrors] ?? 0) + 1;
    counters[COUNTER.writeErrno] = errno;
  }
}
