import { Fault } from "../observe/fault.ts";
import { describeErrno, EAGAIN, EINTR, ENOBUFS } from "./errno.ts";
import { overrunFault } from "./faults.ts";
import { type Libc, openLibc, pointerTo } from "./libc.ts";
import {
  AF_NETLINK,
  NETLINK_ADD_MEMBERSHIP,
  NETLINK_CAP_ACK,
  NETLINK_EXT_ACK,
  NETLINK_GET_STRICT_CHK,
  NETLINK_ROUTE,
  SOL_NETLINK,
} from "./wire/constants.ts";

// asm-generic/socket.h, linux/net.h, asm-generic/fcntl.h.
const SOCK_RAW = 3;
const SOCK_NONBLOCK = 0o4000;
const SOCK_CLOEXEC = 0o2000000;
const SOL_SOCKET = 1;
const SO_RCVBUF = 8;
const SO_RCVTIMEO = 20;
const SO_RCVBUFFORCE = 33;
/** In recv: return the whole length of a datagram, also of one that did not fit. */
const MSG_TRUNC = 0x20;

/** The kernel answers while it takes the request, so a second of silence already means that an answer was lost. */
const ANSWER_SECONDS = 5;

export interface SocketOptions {
  /** Netlink family (NETLINK_*), default NETLINK_ROUTE. */
  readonly protocol?: number;
  /** Receive buffer in bytes; forced past net.core.rmem_max with CAP_NET_ADMIN. The kernel doubles it. */
  readonly receiveBuffer: number;
  /** Multicast groups (RTNLGRP_*); those the kernel does not know are left out. */
  readonly groups?: readonly number[];
  /** For reading in the event loop instead of waiting in `receive`. */
  readonly nonBlocking?: boolean;
}

/** A netlink socket. It belongs to the network namespace its thread was in when it was opened. */
export class NetlinkSocket {
  readonly #libc: Libc;
  readonly #fd: number;
  /** Receive buffer as the kernel granted it, in bytes. */
  readonly receiveBuffer: number;
  #closed = false;

  /** Throws Fault `FFI_UNAVAILABLE` without foreign functions, `NETLINK_SOCKET` when the kernel grants no socket. */
  constructor(options: SocketOptions) {
    this.#libc = openLibc();
    const flags = SOCK_RAW | SOCK_CLOEXEC | (options.nonBlocking ? SOCK_NONBLOCK : 0);
    this.#fd = this.#libc.socket(AF_NETLINK, flags, options.protocol ?? NETLINK_ROUTE);
    if (this.#fd < 0) throw this.#socketFault("open a netlink socket");
    try {
      this.#configure(options);
      this.receiveBuffer = this.#grantedBuffer();
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** For the event loop; the socket stays the owner. */
  get fd(): number {
    return this.#fd;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Sends `length` bytes as one datagram; the kernel has worked off every message in it when this returns. */
  send(bytes: Uint8Array, length: number): void {
    this.#requireOpen();
    const pointer = pointerTo(bytes);
    for (;;) {
      if (this.#libc.send(this.#fd, pointer, length, 0) >= 0) return;
      const errno = this.#libc.errno();
      if (errno === EINTR) continue;
      throw new Fault(
        "NETLINK_SOCKET",
        `cannot send ${length} bytes to the kernel: ${describeErrno(errno)}`,
        {
          hint: "The request is repeated; if this persists, look at the memory of the host.",
        },
      );
    }
  }

  /**
   * One datagram into `bytes`; its length. Throws Fault `NETLINK_OVERRUN` when the kernel dropped some,
   * `NETLINK_TIMEOUT` when none came within five seconds.
   */
  receive(bytes: Uint8Array): number {
    this.#requireOpen();
    const pointer = pointerTo(bytes);
    for (;;) {
      const length = this.#libc.recv(this.#fd, pointer, bytes.byteLength, MSG_TRUNC);
      if (length > bytes.byteLength)
        throw overrunFault(`a message of ${length} bytes did not fit the buffer`);
      if (length >= 0) return length;
      const errno = this.#libc.errno();
      if (errno === EINTR) continue;
      if (errno === ENOBUFS) throw overrunFault(describeErrno(errno));
      if (errno === EAGAIN) {
        throw new Fault("NETLINK_TIMEOUT", `the kernel did not answer within ${ANSWER_SECONDS} s`, {
          hint: "The request is repeated; if this persists, look at the kernel log (dmesg).",
        });
      }
      throw this.#socketFault("receive from the kernel", errno);
    }
  }

  /** Idempotent. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#libc.close(this.#fd);
  }

  #configure(options: SocketOptions): void {
    // struct sockaddr_nl: family, pad, port id (0: the kernel chooses), groups (joined below).
    const address = new Uint8Array(12);
    new DataView(address.buffer).setUint16(0, AF_NETLINK, true);
    if (this.#libc.bind(this.#fd, pointerTo(address), address.byteLength) < 0) {
      throw this.#socketFault("bind a netlink socket");
    }
    if (!this.#setNumber(SOL_SOCKET, SO_RCVBUFFORCE, options.receiveBuffer)) {
      this.#setNumber(SOL_SOCKET, SO_RCVBUF, options.receiveBuffer);
    }
    // Each of these is missing on some kernel we run on (4.2, 4.12, 4.20); the code works without, only coarser.
    this.#setNumber(SOL_NETLINK, NETLINK_CAP_ACK, 1);
    this.#setNumber(SOL_NETLINK, NETLINK_EXT_ACK, 1);
    this.#setNumber(SOL_NETLINK, NETLINK_GET_STRICT_CHK, 1);
    for (const group of options.groups ?? []) this.#setNumber(SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, group);
    // struct timeval on 64-bit: seconds, microseconds.
    const timeout = new BigInt64Array([BigInt(ANSWER_SECONDS), 0n]);
    this.#libc.setsockopt(this.#fd, SOL_SOCKET, SO_RCVTIMEO, pointerTo(timeout), timeout.byteLength);
  }

  #setNumber(level: number, name: number, value: number): boolean {
    const bytes = new Int32Array([value]);
    return this.#libc.setsockopt(this.#fd, level, name, pointerTo(bytes), bytes.byteLength) === 0;
  }

  #grantedBuffer(): number {
    const value = new Int32Array(1);
    const length = new Int32Array([value.byteLength]);
    this.#libc.getsockopt(this.#fd, SOL_SOCKET, SO_RCVBUF, pointerTo(value), pointerTo(length));
    return value[0] ?? 0;
  }

  #requireOpen(): void {
    if (this.#closed) throw new Fault("NETLINK_CLOSED", "the netlink socket is closed");
  }

  #socketFault(what: string, errno = this.#libc.errno()): Fault {
    return new Fault("NETLINK_SOCKET", `cannot ${what}: ${describeErrno(errno)}`, {
      hint: "The container or sandbox must allow AF_NETLINK sockets (systemd: RestrictAddressFamilies=).",
    });
  }
}
