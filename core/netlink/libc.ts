import { dlopen, type FFIFunction, type Library, type Pointer, ptr, read } from "bun:ffi";
import { describeError, Fault } from "../observe/fault.ts";

/**
 * All numbers are `i32` and pointers are passed as numbers taken once: the signature decides the price of a call
 * (2-3 ns so, 10-45 ns with 64-bit types or typed arrays). No length here comes near 2^31. Only ioctl's request, an
 * unsigned long that is rarely sent, has its true width.
 */
const SIGNATURES = {
  socket: { args: ["i32", "i32", "i32"], returns: "i32" },
  bind: { args: ["i32", "ptr", "i32"], returns: "i32" },
  send: { args: ["i32", "ptr", "i32", "i32"], returns: "i32" },
  recv: { args: ["i32", "ptr", "i32", "i32"], returns: "i32" },
  setsockopt: { args: ["i32", "i32", "i32", "ptr", "i32"], returns: "i32" },
  getsockopt: { args: ["i32", "i32", "i32", "ptr", "ptr"], returns: "i32" },
  ioctl: { args: ["i32", "u64", "ptr"], returns: "i32" },
  close: { args: ["i32"], returns: "i32" },
  __errno_location: { args: [], returns: "ptr" },
} as const;

/** glibc's soname first (musl answers to it too where it is the system's libc), then musl's own names. */
const CANDIDATES = ["libc.so.6", "libc.musl-x86_64.so.1", "libc.musl-aarch64.so.1"];

/** The system calls of a netlink socket, and the ioctl that any socket answers. Not to be shared between threads: `errno` is read at a cached place. */
export interface Libc {
  socket(domain: number, type: number, protocol: number): number;
  bind(fd: number, address: Pointer, length: number): number;
  send(fd: number, bytes: Pointer, length: number, flags: number): number;
  recv(fd: number, bytes: Pointer, length: number, flags: number): number;
  setsockopt(fd: number, level: number, name: number, value: Pointer, length: number): number;
  getsockopt(fd: number, level: number, name: number, value: Pointer, length: Pointer): number;
  ioctl(fd: number, request: number, argument: Pointer): number;
  close(fd: number): number;
  /** errno of the call just made on this thread. */
  errno(): number;
}

let opened: Libc | undefined;

/**
 * The C library of this process, opened once per thread. Throws Fault `FFI_UNAVAILABLE` when foreign functions
 * cannot be called: they need the JIT compiler, which systemd's MemoryDenyWriteExecute= and BUN_JSC_useJIT=0 forbid.
 */
export function openLibc(): Libc {
  opened ??= bindSockets();
  return opened;
}

/**
 * Functions of the C library of this process, whichever that is. Throws Fault `FFI_UNAVAILABLE` when foreign functions
 * cannot be called, or one of them is missing.
 */
export function bindLibc<Signatures extends Record<string, FFIFunction>>(
  signatures: Signatures,
): Library<Signatures>["symbols"] {
  let cause: unknown;
  for (const name of CANDIDATES) {
    try {
      return dlopen(name, signatures).symbols;
    } catch (error) {
      cause ??= error;
    }
  }
  throw new Fault("FFI_UNAVAILABLE", `cannot call the C library: ${describeError(cause)}`, {
    hint: "Allow the JIT compiler: remove MemoryDenyWriteExecute= from the unit and unset BUN_JSC_useJIT.",
    cause,
  });
}

function bindSockets(): Libc {
  const symbols = bindLibc(SIGNATURES);
  const place = symbols.__errno_location();
  if (place === null) throw new Error("__errno_location returned NULL");
  return {
    socket: symbols.socket,
    bind: symbols.bind,
    send: symbols.send,
    recv: symbols.recv,
    setsockopt: symbols.setsockopt,
    getsockopt: symbols.getsockopt,
    ioctl: symbols.ioctl,
    close: symbols.close,
    errno: () => read.i32(place, 0),
  };
}

/** Address of a typed array; valid for as long as the caller keeps the array. */
export function pointerTo(bytes: NodeJS.TypedArray): Pointer {
  return ptr(bytes);
}
