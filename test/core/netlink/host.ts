import type { BatchObject, Kernel, KernelChange } from "../../../core/netlink/kernel.ts";
import type { WantedVxlan } from "../../../core/netlink/objects.ts";
import { commandKernelIn, kernelIn } from "../../lab/in-namespace.ts";
import { Namespace } from "../../lab/namespace.ts";

/** Both implementations of Kernel, for suites that must hold for either. */
export const IMPLEMENTATIONS: readonly (readonly [
  name: string,
  open: (ns: Namespace) => Promise<Kernel & Disposable>,
])[] = [
  ["rtnetlink", async (ns) => kernelIn(ns)],
  ["ip and bridge", (ns) => commandKernelIn(ns)],
];

/**
 * A namespace with an underlay and the kernel on it:
 *
 *     eth0 192.0.2.1/24, 2001:db8::1/64 ── veth ── far0 (same namespace, up)
 */
export async function openHost(open: (ns: Namespace) => Promise<Kernel & Disposable>, hint = "host") {
  const ns = await Namespace.create(hint);
  try {
    await ns.ipBatch(
      "link add eth0 mtu 1500 type veth peer name far0",
      "link set far0 up",
      "link set eth0 up",
      "address add 192.0.2.1/24 dev eth0",
      "address add 2001:db8::1/64 dev eth0",
    );
    const kernel = await open(ns);
    return {
      ns,
      kernel,
      async [Symbol.asyncDispose]() {
        kernel[Symbol.dispose]();
        await ns[Symbol.asyncDispose]();
      },
    };
  } catch (error) {
    await ns[Symbol.asyncDispose]();
    throw error;
  }
}

/** The vxlan device most tests work on. */
export const FLANNEL: WantedVxlan = {
  name: "flannel.1",
  type: "vxlan",
  mtu: 1450,
  mac: "02:00:00:00:00:01",
  vxlan: { vni: 1, underlay: "eth0", local: "192.0.2.1", port: 8472, learning: false },
};

/** Creates {@link FLANNEL} and brings it up. */
export async function addFlannel(kernel: Kernel): Promise<void> {
  await kernel.createLink(FLANNEL);
  await kernel.setLink(FLANNEL.name, { up: true });
}

export function put(...objects: readonly BatchObject[]): KernelChange[] {
  return objects.map((object) => ({ action: "put", object }));
}

export function del(...objects: readonly BatchObject[]): KernelChange[] {
  return objects.map((object) => ({ action: "delete", object }));
}
