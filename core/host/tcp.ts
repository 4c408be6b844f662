import { ptr, read } from "bun:ffi";
import { connect } from "node:net";
import { parseIPv4 } from "../net/ipv4.ts";
import { parseIPv6 } from "../net/ipv6.ts";
import { describeErrno } from "../netlink/errno.ts";
import { bindLibc } from "../netlink/libc.ts";
import { sleep } from "../retry/backoff.ts";

/** How an attempt to connect ended. `refused`: a reset came back, so segments pass in both directions. */
export type TcpOutcome =
  | { readonly outcome: "accepted" | "refused" | "timeout" }
  | { readonly outcome: "unreachable"; readonly reason: string };

/** bits/socket.h, asm-generic/socket.h, poll.h, asm-generic/errno.h. */
const AF_INET = 2;
const AF_INET6 = 10;
const STREAM_NONBLOCK_CLOEXEC = 1 | 0o4000 | 0o2000000;
const SOL_SOCKET = 1;
const SO_ERROR = 4;
const POLLOUT = 4;
const ETIMEDOUT = 110;
const ECONNREFUSED = 111;
const ECONNRESET = 104;
const EINPROGRESS = 115;

/** Time between two looks at a connection that is under way, ms. */
const LOOK_MS = 10;

const SIGNATURES = {
  socket: { args: ["i32", "i32", "i32"], returns: "i32" },
  connect: { args: ["i32", "ptr", "u32"], returns: "i32" },
  poll: { args: ["ptr", "u64", "i32"], returns: "i32" },
  getsockopt: { args: ["i32", "i32", "i32", "ptr", "ptr"], returns: "i32" },
  close: { args: ["i32"], returns: "i32" },
  __errno_location: { args: [], returns: "ptr" },
} as const;

/**
 * Connects to a port and hangs up at once; `patience` in ms. Speaks to the C library itself: Bun tells every failure
 * as ECONNREFUSED, also an ICMP error and a time-out, which is the one difference that matters here. Without foreign
 * functions that has to do. Never rejects.
 */
export async function tryTcp(address: string, port: number, patience: number): Promise<TcpOutcome> {
  const target = encodeTarget(address, port);
  if (!target) return { outcome: "unreachable", reason: `${address} is no address` };
  let libc: ReturnType<typeof bindLibc<typeof SIGNATURES>>;
  try {
    libc = bindLibc(SIGNATURES);
  } catch {
    return tryCoarsely(address, port, patience);
  }
  const place = libc.__errno_location();
  const errno = () => (place === null ? 0 : read.i32(place, 0));
  const fd = libc.socket(target.family, STREAM_NONBLOCK_CLOEXEC, 0);
  if (fd < 0) return { outcome: "unreachable", reason: describeErrno(errno()) };
  try {
    if (libc.connect(fd, ptr(target.bytes), target.bytes.length) === 0) return { outcome: "accepted" };
    const error = errno();
    if (error !== EINPROGRESS) return explain(error);
    // struct pollfd: descriptor, wanted events, events that came.
    const poll = new Int32Array([fd, POLLOUT]);
    const deadline = performance.now() + patience;
    while (libc.poll(ptr(poll), 1, 0) === 0) {
      if (performance.now() >= deadline) return { outcome: "timeout" };
      await sleep(LOOK_MS);
    }
    const value = new Int32Array(1);
    const length = new Uint32Array([value.byteLength]);
    libc.getsockopt(fd, SOL_SOCKET, SO_ERROR, ptr(value), ptr(length));
    return explain(value[0] ?? 0);
  } finally {
    libc.close(fd);
  }
}

function explain(errno: number): TcpOutcome {
  if (errno === 0) return { outcome: "accepted" };
  if (errno === ECONNREFUSED || errno === ECONNRESET) return { outcome: "refused" };
  if (errno === ETIMEDOUT) return { outcome: "timeout" };
  return { outcome: "unreachable", reason: describeErrno(errno) };
}

/** struct sockaddr_in or sockaddr_in6 (netinet/in.h): family, port in network order, address. */
function encodeTarget(address: string, port: number): { family: number; bytes: Uint8Array } | undefined {
  const ipv4 = parseIPv4(address);
  const ipv6 = ipv4 === undefined ? parseIPv6(address) : undefined;
  if (ipv4 === undefined && ipv6 === undefined) return undefined;
  const family = ipv4 === undefined ? AF_INET6 : AF_INET;
  const bytes = new Uint8Array(ipv4 === undefined ? 28 : 16);
  const view = new DataView(bytes.buffer);
  view.setUint16(0, family, true);
  view.setUint16(2, port);
  if (ipv4 !== undefined) view.setUint32(4, ipv4);
  else if (ipv6 !== undefined) {
    view.setBigUint64(8, ipv6 >> 64n);
    view.setBigUint64(16, ipv6 & 0xffff_ffff_ffff_ffffn);
  }
  return { family, bytes };
}

function tryCoarsely(address: string, port: number, patience: number): Promise<TcpOutcome> {
  return new Promise((resolve) => {
    const socket = connect({ host: address, port });
    const end = (outcome: TcpOutcome) => {
      clearTimeout(timer);
      socket.destroy();
      resolve(outcome);
    };
    const timer = setTimeout(() => end({ outcome: "timeout" }), patience);
    socket.once("connect", () => end({ outcome: "accepted" }));
    socket.once("error", () => end({ outcome: "refused" }));
  });
}
