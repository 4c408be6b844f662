/**
 * The errors rtnetlink answers with: number, name, text of glibc's strerror, text of musl's where it differs
 * (the texts are what `ip` prints, and `ip` may be linked to either). Numbers: asm-generic/errno{,-base}.h.
 */
const TABLE: readonly (readonly [errno: number, name: string, text: string, musl?: string])[] = [
  [1, "EPERM", "operation not permitted"],
  [2, "ENOENT", "no such file or directory"],
  [3, "ESRCH", "no such process"],
  [4, "EINTR", "interrupted system call"],
  [6, "ENXIO", "no such device or address"],
  [7, "E2BIG", "argument list too long"],
  [9, "EBADF", "bad file descriptor"],
  [11, "EAGAIN", "resource temporarily unavailable"],
  [12, "ENOMEM", "cannot allocate memory", "out of memory"],
  [13, "EACCES", "permission denied"],
  [16, "EBUSY", "device or resource busy", "resource busy"],
  [17, "EEXIST", "file exists"],
  [19, "ENODEV", "no such device"],
  [22, "EINVAL", "invalid argument"],
  [23, "ENFILE", "too many open files in system"],
  [24, "EMFILE", "too many open files", "no file descriptors available"],
  [28, "ENOSPC", "no space left on device"],
  [34, "ERANGE", "numerical result out of range", "result not representable"],
  [75, "EOVERFLOW", "value too large for defined data type", "value too large for data type"],
  [90, "EMSGSIZE", "message too long", "message too large"],
  [92, "ENOPROTOOPT", "protocol not available"],
  [93, "EPROTONOSUPPORT", "protocol not supported"],
  [95, "EOPNOTSUPP", "operation not supported", "not supported"],
  [97, "EAFNOSUPPORT", "address family not supported by protocol"],
  [98, "EADDRINUSE", "address already in use", "address in use"],
  [99, "EADDRNOTAVAIL", "cannot assign requested address", "address not available"],
  [100, "ENETDOWN", "network is down"],
  [101, "ENETUNREACH", "network is unreachable", "network unreachable"],
  [105, "ENOBUFS", "no buffer space available"],
  [107, "ENOTCONN", "transport endpoint is not connected", "socket not connected"],
  [110, "ETIMEDOUT", "connection timed out", "operation timed out"],
  [113, "EHOSTUNREACH", "no route to host", "host is unreachable"],
];

export const EPERM = 1;
export const ENOENT = 2;
export const ESRCH = 3;
export const EINTR = 4;
export const EAGAIN = 11;
export const EACCES = 13;
export const EEXIST = 17;
export const ENODEV = 19;
export const EINVAL = 22;
export const EOPNOTSUPP = 95;
export const EAFNOSUPPORT = 97;
export const EADDRNOTAVAIL = 99;
export const ENETUNREACH = 101;
export const ENOBUFS = 105;
export const EHOSTUNREACH = 113;

const byNumber = new Map(TABLE.map((row) => [row[0], row]));
const byText = new Map(
  TABLE.flatMap(([errno, , text, musl]) =>
    musl === undefined ? [[text, errno] as const] : [[text, errno] as const, [musl, errno] as const],
  ),
);

/** `ENODEV: no such device`, or `EINVAL: <the kernel's own words>` when it gave any. `errno` is positive. */
export function describeErrno(errno: number, kernelText = ""): string {
  const row = byNumber.get(errno);
  if (!row) return `errno ${errno}${kernelText ? `: ${kernelText}` : ""}`;
  return `${row[1]}: ${kernelText || row[2]}`;
}

/** The errno whose strerror text (glibc or musl, any case) this is, undefined for other text. */
export function errnoOfText(text: string): number | undefined {
  return byText.get(text.trim().toLowerCase());
}
