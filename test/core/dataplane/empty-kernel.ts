import type { Kernel } from "../../../core/netlink/kernel.ts";

/** The kernel of a machine with one interface and nothing else, as far as drivers ask it; writes go nowhere. */
export function emptyKernel(external: { readonly index: number; readonly mtu: number }): Kernel {
  const kernel: Pick<
    Kernel,
    "link" | "links" | "addresses" | "routes" | "nexthops" | "apply" | "xfrmPolicies"
  > = {
    link: async (name) => ({ ...external, name, up: true, running: true, loopback: false }),
    links: async () => [],
    addresses: async () => [],
    routes: async () => [],
    nexthops: async () => [],
    apply: async () => [],
    xfrmPolicies: async () => [],
  };
  return kernel as Kernel;
}
