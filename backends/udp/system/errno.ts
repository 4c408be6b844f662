/** Errors of the calls made here that something depends on (asm-generic/errno{-base,}.h). */
export const EPERM = 1;
export const ENOENT = 2;
export const EINTR = 4;
export const EIO = 5;
export const ENXIO = 6;
export const EAGAIN = 11;
export const EACCES = 13;
export const EBUSY = 16;
export const ENODEV = 19;
export const EINVAL = 22;
export const EBADFD = 77;
export const EMSGSIZE = 90;
export const EADDRINUSE = 98;
export const EADDRNOTAVAIL = 99;

const TEXTS: Readonly<Record<number, string>> = {
  [EPERM]: "EPERM: operation not permitted (a firewall, or a missing capability)",
  [ENOENT]: "ENOENT: no such file or directory",
  [EIO]: "EIO: input/output error",
  [ENXIO]: "ENXIO: no such device",
  [EACCES]: "EACCES: permission denied",
  12: "ENOMEM: out of memory",
  [EBUSY]: "EBUSY: device or resource busy",
  [ENODEV]: "ENODEV: no such device",
  [EINVAL]: "EINVAL: invalid argument",
  24: "EMFILE: too many open files",
  [EBADFD]: "EBADFD: file descriptor in bad state",
  [EMSGSIZE]: "EMSGSIZE: message too long",
  97: "EAFNOSUPPORT: address family not supported",
  [EADDRINUSE]: "EADDRINUSE: address already in use",
  [EADDRNOTAVAIL]: "EADDRNOTAVAIL: cannot assign requested address",
  100: "ENETDOWN: network is down",
  101: "ENETUNREACH: network is unreachable",
  105: "ENOBUFS: no buffer space available",
  113: "EHOSTUNREACH: no route to host",
};

/** An errno for people: `EBUSY: device or resource busy`. */
export function describeErrno(errno: number): string {
  return TEXTS[errno] ?? `errno ${errno}`;
}
