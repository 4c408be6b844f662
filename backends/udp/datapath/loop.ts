import { FAMILIES, type Family } from "../packet/address.ts";
import { Arena } from "../packet/arena.ts";
import { createSum } from "../packet/checksum.ts";
import { type Libc, openLibc, pointerTo } from "../system/libc.ts";
import { SOCKET_ADDRESS_ROOM } from "../system/socket-address.ts";
import { Coalescer } from "./coalescer.ts";
import { COUNTER } from "./counters.ts";
import { DeviceError } from "./device-error.ts";
import { IcmpReporter } from "./icmp.ts";
import type { PeersMessage, StartMessage } from "./messages.ts";
import { Outbox } from "./outbox.ts";
import { Oversize } from "./oversize.ts";
import { Pace } from "./pace.ts";
import { PeerTable } from "./peer-table.ts";
import { Receiver } from "./receiver.ts";
import { Transmitter } from "./transmitter.ts";
import { TunWriter } from "./tun-writer.ts";

/** All buffers: packets to send, 16 large messages per family, and small things. */
const ARENA = 4 * 1024 * 1024;
/** ICMP errors per second, and at once. */
const ICMP_RATE = 200;
const ICMP_BURST = 50;
/** asm-generic/poll.h. */
const POLLIN = 0x1;
const POLLBROKEN = 0x8 | 0x20;
/** sizeof(struct pollfd), and where what happened is in it. */
const POLLFD = 8;
const REVENTS = 6;
const ENODEV = 19;

/** The data path of one thread: sleeps until there is something to do, and forwards it. */
export class ForwardingLoop {
  readonly #libc: Libc = openLibc();
  readonly #counters: Float64Array;
  readonly #transmitter: Transmitter;
  readonly #receivers: readonly Receiver[];
  readonly #wake: number;
  readonly #polled: DataView;
  readonly #pollBytes: Uint8Array;
  readonly #token = new Uint8Array(SOCKET_ADDRESS_ROOM);
  #table: PeerTable;

  constructor(start: StartMessage) {
    const arena = new Arena(ARENA);
    const libc = this.#libc;
    const counters = new Float64Array(start.counters);
    const sum = createSum(arena);
    const table = new PeerTable({ routes: new Int32Array(0), endpoints: new Uint8Array(0) });
    const pace = new Pace(ICMP_RATE, ICMP_BURST);
    const icmp = new IcmpReporter({ arena, libc, sum, counters, pace }, start);
    const oversize = new Oversize(arena, libc, counters, icmp);
    const writer = new TunWriter(arena, libc, counters, start.tun);
    const joins = { tcp: start.tun.tcpOffload, udp: start.tun.udpOffload };
    const coalescer = new Coalescer({ arena, sum, counters, writer }, joins);
    const outboxOf = (family: Family) => {
      const socket = start[family];
      return socket && new Outbox({ arena, libc, counters, table, oversize }, family, socket);
    };
    const [outbox4, outbox6] = [outboxOf("ipv4"), outboxOf("ipv6")];
    this.#counters = counters;
    this.#table = table;
    this.#transmitter = new Transmitter(
      { arena, libc, sum, counters, icmp, table, outbox4, outbox6 },
      start.tun,
    );
    const sockets = FAMILIES.flatMap((family) => {
      const socket = start[family];
      return socket ? [{ family, socket }] : [];
    });
    this.#receivers = sockets.map(
      ({ family, socket }) => new Receiver({ arena, libc, counters, icmp, coalescer, table }, family, socket),
    );
    this.#wake = start.wake;
    const files = [start.wake, start.tun.fd, ...sockets.map(({ socket }) => socket.fd)];
    this.#pollBytes = new Uint8Array(files.length * POLLFD);
    this.#polled = new DataView(this.#pollBytes.buffer);
    files.forEach((fd, n) => {
      this.#polled.setInt32(n * POLLFD, fd, true);
      this.#polled.setInt16(n * POLLFD + 4, POLLIN, true);
    });
  }

  /** All peers there are, from now on. */
  setPeers(message: PeersMessage): void {
    // The former table's addresses are in no message that waits: nothing waits between two runs.
    this.#table = new PeerTable(message);
    this.#transmitter.table = this.#table;
    for (const receiver of this.#receivers) receiver.table = this.#table;
  }

  /** Forwards until the wake descriptor is written to. Throws {@link DeviceError} when the device is gone. */
  run(): void {
    const libc = this.#libc;
    const polled = pointerTo(this.#pollBytes);
    const count = this.#pollBytes.length / POLLFD;
    const receivers = this.#receivers;
    for (;;) {
      libc.poll(polled, count, -1);
      this.#counters[COUNTER.wakeups] = (this.#counters[COUNTER.wakeups] ?? 0) + 1;
      if (this.#eventsOf(0) !== 0) {
        libc.read(this.#wake, pointerTo(this.#token), 8);
        return;
      }
      const device = this.#eventsOf(1);
      if ((device & POLLBROKEN) !== 0) throw new DeviceError(ENODEV);
      if (device !== 0) this.#transmitter.run();
      for (let n = 0; n < receivers.length; n++) {
        if (this.#eventsOf(n + 2) !== 0) receivers[n]?.run();
      }
    }
  }

  #eventsOf(n: number): number {
    return this.#polled.getInt16(n * POLLFD + REVENTS, true);
  }
}

/** Frees a thread from {@link ForwardingLoop.run}. */
export function wakeLoop(wake: number): void {
  openLibc().write(wake, pointerTo(new BigUint64Array([1n])), 8);
}

/** A descriptor for {@link wakeLoop}: eventfd(2), -1 when there is none to be had. */
export function openWake(): number {
  return openLibc().eventfd(0, 0o4000 | 0o2000000);
}
