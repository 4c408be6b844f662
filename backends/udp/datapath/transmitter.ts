import type { Arena } from "../packet/arena.ts";
import type { Sum } from "../packet/checksum.ts";
import { decrementTtl, IP4, IP6, UDP } from "../packet/ip.ts";
import { GSO, NEEDS_CHECKSUM, VNET } from "../packet/virtio.ts";
import { EAGAIN, EINTR } from "../system/errno.ts";
import type { Libc } from "../system/libc.ts";
import { type Tun, VNET_HEADER_LENGTH } from "../system/tun.ts";
import { COUNTER } from "./counters.ts";
import { DeviceError } from "./device-error.ts";
import type { IcmpReporter } from "./icmp.ts";
import type { Outbox } from "./outbox.ts";
import type { PeerTable } from "./peer-table.ts";
import { Segmenter } from "./segmenter.ts";

/** Largest packet the device hands over, with the header before it. */
const LARGEST = 65_535 + VNET_HEADER_LENGTH;
/** Room for the packets of one flush. Small enough to stay in the processor's second cache. */
const ROOM = 256 * 1024;
/** Packets are read to places that leave room for their virtio header and have aligned IP headers. */
const HEADROOM = 16;
/** Packets read in one turn: the other direction waits that long. */
const BUDGET = 64;

/** From the TUN device to the peers. */
export class Transmitter {
  readonly #arena: Arena;
  readonly #libc: Libc;
  readonly #sum: Sum;
  readonly #counters: Float64Array;
  readonly #icmp: IcmpReporter;
  readonly #tun: number;
  readonly #header: number;
  readonly #outbox4: Outbox | undefined;
  readonly #outbox6: Outbox | undefined;
  readonly #segmenter: Segmenter;
  readonly #start: number;
  readonly #end: number;
  #table: PeerTable;
  #cursor: number;
  /** Packets of the last turn. */
  #last = 0;
  /** The destination looked up last, and what came of it. */
  #word = 0;
  #endpoint = -1;

  constructor(parts: TransmitterParts, tun: Tun) {
    this.#arena = parts.arena;
    this.#libc = parts.libc;
    this.#sum = parts.sum;
    this.#counters = parts.counters;
    this.#icmp = parts.icmp;
    this.#tun = tun.fd;
    this.#header = tun.vnetHeader ? VNET_HEADER_LENGTH : 0;
    this.#outbox4 = parts.outbox4;
    this.#outbox6 = parts.outbox6;
    this.#table = parts.table;
    this.#segmenter = new Segmenter(parts.arena, parts.sum, () => this.#flushOutboxes());
    this.#start = parts.arena.reserve(ROOM + LARGEST, 4_096);
    this.#end = this.#start + ROOM;
    this.#cursor = this.#start;
  }

  /** Peers from now on. */
  set table(table: PeerTable) {
    this.#table = table;
    this.#endpoint = -1;
    this.#word = 0;
    if (this.#outbox4) this.#outbox4.table = table;
    if (this.#outbox6) this.#outbox6.table = table;
  }

  /**
   * Forwards what waits. Returns whether there may be more. Throws when the device cannot be read any more; the error
   * names the errno.
   */
  run(): boolean {
    for (let n = 0; n < BUDGET; n++) {
      if (this.#cursor >= this.#end) this.#flush();
      const ip = this.#cursor + HEADROOM;
      const read = this.#libc.read(this.#tun, this.#arena.address(ip - this.#header), LARGEST);
      if (read < 0) {
        const errno = this.#libc.errno();
        if (errno === EINTR) continue;
        this.#flush();
        this.#last = n;
        if (errno === EAGAIN) return false;
        throw new DeviceError(errno);
      }
      const length = read - this.#header;
      this.#cursor = (ip + length + 15) & -16;
      this.#forward(ip, length);
      // Where packets come one by one, nothing is gained by looking for another one first.
      if (n === 0 && this.#last <= 1) this.#flush();
    }
    this.#flush();
    this.#last = BUDGET;
    return true;
  }

  #flush(): void {
    this.#flushOutboxes();
    this.#cursor = this.#start;
  }

  #flushOutboxes(): void {
    this.#outbox4?.flush();
    this.#outbox6?.flush();
    this.#segmenter.reset();
  }

  #forward(ip: number, length: number): void {
    const version = (this.#arena.bytes[ip] ?? 0) >>> 4;
    if (version === 4 && length >= IP4.length) this.#forward4(ip, length);
    else if (version === 6 && length >= IP6.length) this.#forward6(ip, length);
    else this.#count(COUNTER.malformed);
  }

  #forward4(ip: number, length: number): void {
    const { bytes, view } = this.#arena;
    const destination = view.getInt32(ip + IP4.destination);
    if (destination !== this.#word || this.#endpoint < 0) {
      this.#word = destination;
      this.#endpoint = this.#table.find4(destination);
    }
    if (this.#endpoint < 0 || !this.#outbox4) {
      // Class D, and broadcasts.
      if (destination >>> 28 >= 14) {
        this.#count(COUNTER.multicast);
        return;
      }
      this.#count(COUNTER.noRoute);
      this.#icmp.noRoute(ip, length);
      return;
    }
    if ((bytes[ip + IP4.ttl] ?? 0) <= 1) {
      this.#count(COUNTER.expired);
      this.#icmp.expired(ip, length);
      return;
    }
    decrementTtl(view, ip);
    this.#send(this.#outbox4, this.#endpoint, ip, length);
  }

  #forward6(ip: number, length: number): void {
    const { bytes, view } = this.#arena;
    const to = ip + IP6.destination;
    const isMulticast = bytes[to] === 0xff;
    const endpoint =
      isMulticast || !this.#outbox6
        ? -1
        : this.#table.find6(
            view.getInt32(to),
            view.getInt32(to + 4),
            view.getInt32(to + 8),
            view.getInt32(to + 12),
          );
    if (endpoint < 0 || !this.#outbox6) {
      this.#count(isMulticast ? COUNTER.multicast : COUNTER.noRoute);
      if (!isMulticast) this.#icmp.noRoute(ip, length);
      return;
    }
    const hops = bytes[ip + IP6.hopLimit] ?? 0;
    if (hops <= 1) {
      this.#count(COUNTER.expired);
      this.#icmp.expired(ip, length);
      return;
    }
    bytes[ip + IP6.hopLimit] = hops - 1;
    this.#send(this.#outbox6, endpoint, ip, length);
  }

  #send(outbox: Outbox, endpoint: number, ip: number, length: number): void {
    if (this.#header > 0) {
      const header = ip - VNET_HEADER_LENGTH;
      const { bytes, view } = this.#arena;
      const kind = (bytes[header + VNET.gsoType] ?? 0) & ~GSO.ecn;
      const start = view.getUint16(header + VNET.checksumStart, true);
      if (kind !== GSO.none) {
        const size = view.getUint16(header + VNET.gsoSize, true);
        const isCut = this.#segmenter.segment(outbox, endpoint, ip, length, start, size, kind === GSO.udp);
        if (!isCut) this.#count(COUNTER.malformed);
        return;
      }
      if (((bytes[header + VNET.flags] ?? 0) & NEEDS_CHECKSUM) !== 0) {
        this.#complete(ip, length, start, view.getUint16(header + VNET.checksumOffset, true));
      }
    }
    if (!outbox.begin(endpoint, length)) {
      outbox.flush();
      outbox.begin(endpoint, length);
    }
    outbox.piece(ip, length);
  }

  /** Completes a checksum that the kernel left to the device. */
  #complete(ip: number, length: number, start: number, offset: number): void {
    if (start + offset + 2 > length) return;
    const checksum = ~this.#sum(ip + start, length - start, 0) & 0xffff;
    // RFC 768: zero says that there is none.
    const written = checksum === 0 && offset === UDP.checksum ? 0xffff : checksum;
    this.#arena.view.setUint16(ip + start + offset, written, true);
  }

  #count(counter: number): void {
    this.#counters[counter] = (this.#counters[counter] ?? 0) + 1;
  }
}

/** What a transmitter works with. */
export interface TransmitterParts {
  readonly arena: Arena;
  readonly libc: Libc;
  readonly sum: Sum;
  readonly counters: Float64Array;
  readonly icmp: IcmpReporter;
  readonly table: PeerTable;
  readonly outbox4: Outbox | undefined;
  readonly outbox6: Outbox | undefined;
}
