import { dlopen, read } from "bun:ffi";
import { closeSync, openSync } from "node:fs";
import type { Host } from "flannel/sdk";
import { CommandKernel } from "../../core/netlink/command/kernel.ts";
import type { Run } from "../../core/netlink/command/run.ts";
import type { Kernel } from "../../core/netlink/kernel.ts";
import { RtnetlinkKernel, type RtnetlinkOptions } from "../../core/netlink/rtnetlink.ts";
import type { WireguardChange } from "../../core/netlink/wireguard-objects.ts";
import type { Namespace } from "./namespace.ts";

const { symbols: libc } = dlopen("libc.so.6", {
  setns: { args: ["i32", "i32"], returns: "i32" },
  __errno_location: { args: [], returns: "ptr" },
});
/** linux/sched.h */
const CLONE_NEWNET = 0x40000000;

/**
 * Calls `work` with this thread inside the namespace, and comes back before returning. Only what happens before
 * the first `await` of `work` is inside; a socket opened there stays inside for its life. (Processes started and
 * files under /proc/sys and /sys read inside still see the outer namespace's mounts: use `ns.exec` for those.)
 */
export function inNamespace<T>(ns: Namespace, work: () => T): T {
  const home = openSync("/proc/thread-self/ns/net", "r");
  try {
    const there = openSync(ns.path, "r");
    try {
      enter(there, ns.name);
    } finally {
      closeSync(there);
    }
    try {
      return work();
    } finally {
      enter(home, "the namespace of the test");
    }
  } finally {
    closeSync(home);
  }
}

/** The kernel of a namespace over rtnetlink; closed at the end of the scope with `using`. */
export function kernelIn(ns: Namespace, options: RtnetlinkOptions = {}): Kernel & Disposable {
  const kernel = inNamespace(ns, () => new RtnetlinkKernel(options));
  // A subscription opens its socket when it is made, so it has to be made inside, too.
  const notices = kernel.notices.bind(kernel);
  // And so does the first question about WireGuard.
  const wireguard = kernel.wireguard.bind(kernel);
  const setWireguard = kernel.setWireguard.bind(kernel);
  // About IPsec, the first one is for the policies.
  const xfrmPolicies = kernel.xfrmPolicies.bind(kernel);
  return Object.assign(kernel, {
    notices: (signal: AbortSignal) => inNamespace(ns, () => notices(signal)),
    wireguard: (dev: string) => inNamespace(ns, () => wireguard(dev)),
    setWireguard: (dev: string, change: WireguardChange) => inNamespace(ns, () => setWireguard(dev, change)),
    xfrmPolicies: () => inNamespace(ns, xfrmPolicies),
    [Symbol.dispose]: () => kernel.close(),
  });
}

/** Runs commands inside a namespace the way core/host/exec runs them outside: a failure carries `stderr`. */
export function runIn(ns: Namespace): Run & Host["run"] {
  return async (file, args, options: Parameters<Host["run"]>[2] = {}) => {
    const { stdout, stderr, exitCode } = await ns.run([file, ...args], options);
    if (exitCode !== 0) throw Object.assign(new Error(`${file} ended with ${exitCode}`), { stderr });
    return { stdout, stderr };
  };
}

/** The kernel of a namespace through `ip` and `bridge`. */
export async function commandKernelIn(ns: Namespace, pollInterval = 25): Promise<Kernel & Disposable> {
  const kernel = await CommandKernel.open(runIn(ns), { pollInterval });
  return Object.assign(kernel, { [Symbol.dispose]: () => kernel.close() });
}

function enter(fd: number, name: string): void {
  if (libc.setns(fd, CLONE_NEWNET) === 0) return;
  const place = libc.__errno_location();
  throw new Error(`setns to ${name}: errno ${place === null ? "unknown" : read.i32(place, 0)}`);
}
