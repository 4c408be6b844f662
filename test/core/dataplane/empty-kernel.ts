import type { Kernel } from "../../../core/netlink/kernel.ts";
import { untilAborted } from "../../../core/retry/abort.ts";

/** The kernel of a machine with one interface and nothing else, as far as drivers ask it; writes go nowhere. */
export function emptyKernel(external: { readonly index: number; readonly mtu: number }): Kernel {
  const kernel: Pick<
    Kernel,
    "link" | "links" | "addresses" | "routes" | "nexthops" | "apply" | "xfrmPolicies" | "notices"
  > = {
    link: async (name) => ({ ...external, name, up: true, running: true, loopback: false }),
    links: async () => [],
    addresses: async () => [],
    routes: async () => [],
    nexthops: async () => [],
    apply: async () => [],
    xfrmPolicies: async () => [],
    // biome-ignore lint/correctness/useYield: nothing ever changes.
    notices: async function* (signal) {
      await untilAborted(signal);
    },
  };
  return kernel as Kernel;
}
