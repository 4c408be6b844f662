import { Fault } from "flannel/sdk";
import type { Family } from "../packet/address.ts";
import { describeErrno, EADDRINUSE, EADDRNOTAVAIL } from "./errno.ts";
import { type Libc, openLibc, pointerTo } from "./libc.ts";
import { ADDRESS_FAMILY, socketAddress } from "./socket-address.ts";

/** linux/socket.h, linux/net.h. */
const SOCK_DGRAM = 2;
const SOCK_RAW = 3;
const SOCK_NONBLOCK = 0o4000;
const SOCK_CLOEXEC = 0o2000000;
const SOL_SOCKET = 1;
const SO_SNDBUF = 7;
const SO_RCVBUF = 8;
const SO_SNDBUFFORCE = 32;
const SO_RCVBUFFORCE = 33;
/** linux/in.h, linux/in6.h, linux/udp.h. */
const IPPROTO_RAW = 255;
const IPPROTO_UDP = 17;
const IPV6_V6ONLY = 26;
const UDP_SEGMENT = 103;
const UDP_GRO = 104;
/** Level and name of the option that says whether datagrams may be fragmented, and of the one that tells the MTU. */
const DISCOVERY = { ipv4: [0, 10], ipv6: [41, 23] } as const;
const PATH_MTU = { ipv4: [0, 14], ipv6: [41, 24] } as const;
const IPPROTO_IPV6 = 41;

/** IP_PMTUDISC_*: fragment where needed, or refuse what does not fit the path (linux/in.h). */
export const FRAGMENT = 0;
export const REFUSE = 2;

/** Wanted buffer sizes; some ten milliseconds of traffic at 1 GB/s. */
const BUFFER = 8 * 1024 * 1024;

/** The socket of one family. */
export interface UdpSocket {
  readonly fd: number;
  /** Whether one send may carry many datagrams (UDP_SEGMENT, Linux ≥ 4.18). */
  readonly segments: boolean;
  /** Whether one receive may bring many (UDP_GRO, Linux ≥ 5.0). */
  readonly coalesces: boolean;
}

/**
 * Binds the socket that datagrams come and go through; datagrams that do not fit the path are refused, not fragmented.
 * Throws Fault `UDP_PORT_IN_USE` or `UDP_SOCKET_REFUSED`.
 */
export function openUdpSocket(family: Family, address: string, port: number, offload: boolean): UdpSocket {
  const libc = openLibc();
  const fd = libc.socket(ADDRESS_FAMILY[family], SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) throw refusedFault(`${family} socket`, libc.errno());
  const set = (level: number, name: number, value: number) => setOption(libc, fd, level, name, value);
  if (family === "ipv6") set(IPPROTO_IPV6, IPV6_V6ONLY, 1);
  const name = socketAddress(address, port);
  if (!name || libc.bind(fd, pointerTo(name), name.length) !== 0) {
    const errno = name ? libc.errno() : EADDRNOTAVAIL;
    libc.close(fd);
    throw refusedFault(family === "ipv4" ? `${address}:${port}` : `[${address}]:${port}`, errno);
  }
  // The forcing variants ignore the limits of the system, and need CAP_NET_ADMIN in the first user namespace.
  if (!set(SOL_SOCKET, SO_RCVBUFFORCE, BUFFER)) set(SOL_SOCKET, SO_RCVBUF, BUFFER);
  if (!set(SOL_SOCKET, SO_SNDBUFFORCE, BUFFER)) set(SOL_SOCKET, SO_SNDBUF, BUFFER);
  setDiscovery(fd, family, REFUSE);
  return {
    fd,
    segments: offload && set(IPPROTO_UDP, UDP_SEGMENT, 0),
    coalesces: offload && set(IPPROTO_UDP, UDP_GRO, 1),
  };
}

/**
 * A socket that sends whole IP packets as this host's own: ICMP errors. -1 where that is not allowed (CAP_NET_RAW):
 * then there are none.
 */
export function openRawSocket(family: Family): number {
  return openLibc().socket(ADDRESS_FAMILY[family], SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_RAW);
}

/** What becomes of datagrams that do not fit the path: {@link FRAGMENT} or {@link REFUSE}. */
export function setDiscovery(fd: number, family: Family, value: number): void {
  const [level, name] = DISCOVERY[family];
  setOption(openLibc(), fd, level, name, value);
}

/** The MTU of the path to a socket address as the kernel knows it now; undefined when it does not tell. */
export function pathMtu(family: Family, address: Uint8Array): number | undefined {
  const libc = openLibc();
  const fd = libc.socket(ADDRESS_FAMILY[family], SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return undefined;
  const [level, name] = PATH_MTU[family];
  const value = new Int32Array(1);
  const length = new Int32Array([4]);
  const known =
    libc.connect(fd, pointerTo(address), address.length) === 0 &&
    libc.getsockopt(fd, level, name, pointerTo(value), pointerTo(length)) === 0;
  libc.close(fd);
  return known ? value[0] : undefined;
}

function setOption(libc: Libc, fd: number, level: number, name: number, value: number): boolean {
  return libc.setsockopt(fd, level, name, pointerTo(new Int32Array([value])), 4) === 0;
}

function refusedFault(what: string, errno: number): Fault {
  if (errno === EADDRINUSE) {
    return new Fault("UDP_PORT_IN_USE", `UDP ${what} is in use by another process`, {
      hint: "Stop it (`ss -lunp` shows who has the port), or set another Port for the whole cluster.",
    });
  }
  return new Fault("UDP_SOCKET_REFUSED", `cannot use UDP ${what}: ${describeErrno(errno)}`, {
    hint: errno === EADDRNOTAVAIL ? "The interface has lost that address: see `ip address`." : "",
  });
}
