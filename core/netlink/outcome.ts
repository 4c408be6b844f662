import {
  EACCES,
  EADDRNOTAVAIL,
  EAFNOSUPPORT,
  EEXIST,
  EHOSTUNREACH,
  EINVAL,
  ENETUNREACH,
  ENODEV,
  ENOENT,
  EOPNOTSUPP,
  ESRCH,
} from "./errno.ts";
import type { Refusal } from "./faults.ts";
import type { KernelChange } from "./kernel.ts";

/** nh_id of a route delete names no nexthop object: with the object its routes went too (net/ipv4/fib_frontend.c). */
const NO_SUCH_NEXTHOP = "Nexthop id does not exist";

/** Whether a refusal means that the change is already so: the address exists, the object is gone. */
export function isAlreadySo({ action, object }: KernelChange, { errno, text }: Refusal): boolean {
  if (action === "put") return object.kind === "address" && errno === EEXIST;
  if (object.kind === "nexthop-route" && errno === EINVAL) return text.includes(NO_SUCH_NEXTHOP);
  return errno === ENOENT || errno === ESRCH || errno === ENODEV || errno === EADDRNOTAVAIL;
}

/** Whether `ip route get` failed because there is no usable route: none, unreachable, blackhole or prohibit. */
export function isUnreachable({ errno }: Refusal): boolean {
  return [ENETUNREACH, EHOSTUNREACH, EINVAL, EACCES, ESRCH].includes(errno);
}

/** Whether `ip rule delete` failed because there is no such rule, or no rules at all in this family or kernel. */
export function isNoRule({ errno }: Refusal): boolean {
  return errno === ENOENT || errno === EAFNOSUPPORT || errno === EOPNOTSUPP;
}
