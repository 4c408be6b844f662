import type { Host } from "../../lab/host.ts";
import { ping } from "../../lab/ping.ts";
import type { Pod } from "../../lab/pod.ts";
import { hasV6 } from "../../lab/segment.ts";
import { showAssociations } from "../ipsec-lab.ts";
import { runBeside } from "../wireguard-lab.ts";

/** Where a kernel may have something of a peer; only some have xfrm. In few processes: guests are slow to start one. */
const KERNEL = `
ip -force -batch - 2>/dev/null <<.
route show table all
neighbour show nud permanent
xfrm policy list
xfrm state list
.
bridge fdb show
`;

/** Whether a host's kernel has anything with the subnets or addresses of the pod's node. */
export async function hasInKernel(host: Host, pod: Pod): Promise<boolean> {
  return mentions(await host.namespace.exec("sh", "-c", KERNEL), pod);
}

/** As {@link hasInKernel}, and whether a WireGuard device has it for a peer. */
export async function hasInWireguard(host: Host, pod: Pod): Promise<boolean> {
  const { stdout } = await runBeside(host, "sh", "-c", "wg show all allowed-ips; wg show all endpoints");
  return mentions(stdout, pod) || hasInKernel(host, pod);
}

/** As {@link hasInKernel}, and whether a tunnel of charon's leads there. */
export async function hasInCharon(host: Host, pod: Pod): Promise<boolean> {
  return mentions(await showAssociations(host), pod) || hasInKernel(host, pod);
}

/** Whether the udp backend sends to the pod's node, alive or not: it says "unreachable" of what it has no peer for. */
export async function answersForUdp(host: Host, pod: Pod): Promise<boolean> {
  const answers = await Promise.all(
    pod.addresses.map((address) => ping(host, address, { count: 1, deadline: 300 })),
  );
  return !answers.every(({ output }) => /unreachable/i.test(output));
}

function mentions(text: string, { host, addresses }: Pod): boolean {
  const own = [host.ipv4, ...(hasV6(host.family) ? [host.ipv6] : [])];
  const subnets = addresses.map((address) => address.slice(0, address.search(/[^.:]+$/)));
  return (
    subnets.some((start) => text.includes(start)) ||
    own.some((address) => new RegExp(`(?<![\\w.:])${address.replaceAll(".", "\\.")}(?![\\w.])`).test(text))
  );
}
