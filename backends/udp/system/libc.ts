import { dlopen, type Pointer, ptr, read } from "bun:ffi";
import { Fault } from "flannel/sdk";

export type { Pointer };

/**
 * Numbers are `i32` and pointers are plain numbers taken once: the signature decides the price of a call (2–3 ns so,
 * 10–45 ns with 64-bit types or typed arrays). No length here comes near 2^31. Only ioctl's request has its true width.
 */
const SIGNATURES = {
  socket: { args: ["i32", "i32", "i32"], returns: "i32" },
  bind: { args: ["i32", "ptr", "i32"], returns: "i32" },
  connect: { args: ["i32", "ptr", "i32"], returns: "i32" },
  setsockopt: { args: ["i32", "i32", "i32", "ptr", "i32"], returns: "i32" },
  getsockopt: { args: ["i32", "i32", "i32", "ptr", "ptr"], returns: "i32" },
  ioctl: { args: ["i32", "u64", "ptr"], returns: "i32" },
  open: { args: ["ptr", "i32"], returns: "i32" },
  eventfd: { args: ["i32", "i32"], returns: "i32" },
  poll: { args: ["ptr", "i32", "i32"], returns: "i32" },
  read: { args: ["i32", "ptr", "i32"], returns: "i32" },
  write: { args: ["i32", "ptr", "i32"], returns: "i32" },
  writev: { args: ["i32", "ptr", "i32"], returns: "i32" },
  sendto: { args: ["i32", "ptr", "i32", "i32", "ptr", "i32"], returns: "i32" },
  sendmsg: { args: ["i32", "ptr", "i32"], returns: "i32" },
  sendmmsg: { args: ["i32", "ptr", "i32", "i32"], returns: "i32" },
  recvmmsg: { args: ["i32", "ptr", "i32", "i32", "ptr"], returns: "i32" },
  close: { args: ["i32"], returns: "i32" },
  __errno_location: { args: [], returns: "ptr" },
} as const;

/** glibc's soname first (musl answers to it where it is the system's libc), then musl's own names. */
const CANDIDATES = ["libc.so.6", "libc.musl-x86_64.so.1", "libc.musl-aarch64.so.1"];

type Symbols = ReturnType<typeof dlopen<typeof SIGNATURES>>["symbols"];

/** The system calls of the data path. Not to be shared between threads: `errno` is read at a cached place. */
export type Libc = Omit<Symbols, "__errno_location"> & {
  /** errno of the call just made on this thread. */
  errno(): number;
};

let opened: Libc | undefined;

/**
 * The C library, opened once per thread. Throws Fault `UDP_NO_FFI` when foreign functions cannot be called: they need
 * the JIT compiler, which systemd's MemoryDenyWriteExecute= and BUN_JSC_useJIT=0 forbid.
 */
export function openLibc(): Libc {
  if (opened) return opened;
  let cause: unknown;
  for (const name of CANDIDATES) {
    try {
      opened = bindSymbols(name);
      return opened;
    } catch (error) {
      cause ??= error;
    }
  }
  throw new Fault("UDP_NO_FFI", "the udp backend cannot call the C library", {
    hint: "Allow the JIT compiler (remove MemoryDenyWriteExecute= from the unit, unset BUN_JSC_useJIT), or use vxlan.",
    cause,
  });
}

function bindSymbols(name: string): Libc {
  const { symbols } = dlopen(name, SIGNATURES);
  const place = symbols.__errno_location();
  if (place === null) throw new Error("__errno_location returned NULL");
  return { ...symbols, errno: () => read.i32(place, 0) };
}

/** Address of a typed array; valid for as long as the caller keeps the array. */
export function pointerTo(bytes: NodeJS.TypedArray): Pointer {
  return ptr(bytes);
}

/** A number as an argument of pointer type: an address computed by hand, or a plain value for ioctl. */
export function asPointer(value: number): Pointer {
  return value as Pointer;
}
