import { ptr } from "bun:ffi";
import { bindLibc } from "../netlink/libc.ts";

/** adjtimex(2): size of struct timex on 64-bit, and what it returns while the clock is not synchronised. */
const TIMEX_BYTES = 208;
const TIME_ERROR = 5;

/**
 * Whether something (NTP, chrony, a hypervisor) keeps the kernel's clock right, as the kernel sees it; undefined when
 * it cannot be asked. Changes nothing.
 */
export function isClockSynchronised(): boolean | undefined {
  try {
    const libc = bindLibc({ adjtimex: { args: ["ptr"], returns: "i32" } });
    // All zero: `modes` 0 only reads.
    const state = libc.adjtimex(ptr(new Uint8Array(TIMEX_BYTES)));
    return state < 0 ? undefined : state !== TIME_ERROR;
  } catch {
    return undefined;
  }
}
