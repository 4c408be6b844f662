/**
 * Pods of different hosts reach each other, over every backend and family.
 *
 *   pod ── cni0 ── h1 ── ext0 ─┬─ switch + etcd ─┬─ ext0 ── h2 ── cni0 ── pod
 *                              └── ext0 ── h3 ───┘
 *                                          cni0 ── pod
 */
import { describe, expect, test } from "bun:test";
import { Cluster, networkConfig } from "../lab/cluster.ts";
import { expectInSync } from "../lab/oracle.ts";
import { ping } from "../lab/ping.ts";
import type { Pod } from "../lab/pod.ts";
import type { Family } from "../lab/segment.ts";
import { readSubnetFile } from "../lab/subnet-file.ts";
import { tcpTransfer } from "../lab/transfer.ts";

const TIMEOUT = 60_000;

/** Header bytes of an echo request: IP and ICMP. */
const ECHO_HEADERS = { ipv4: 28, ipv6: 48 } as const;

/** The MTU of pods is the underlay's 1500 less the encapsulation: 50 bytes over IPv4, 70 over IPv6, none for routes. */
const CASES: readonly (readonly [type: string, family: Family, hosts: number, mtu: number])[] = [
  ["vxlan", "v4", 3, 1450],
  ["vxlan", "v6", 2, 1430],
  ["vxlan", "dual", 2, 1430],
  ["host-gw", "v4", 3, 1500],
  ["host-gw", "v6", 2, 1500],
  ["host-gw", "dual", 2, 1500],
];

describe.each(CASES)("%s %s", (type, family, hosts, mtu) => {
  test(
    `${hosts} hosts: the kernel is as etcd says, every pair pings, TCP flows, and the MTU is exact`,
    async () => {
      const config = networkConfig(family, { Type: type });
      await using cluster = await Cluster.create({ hosts, family, config });
      await cluster.startDaemons();
      await expectInSync(cluster.hosts, cluster.etcd);
      const pods = await cluster.addPods();
      for (const host of cluster.hosts) expect((await readSubnetFile(host.subnetFile)).mtu).toBe(mtu);

      for (const [from, to, address] of pairs(pods)) {
        const { output, ...result } = await ping(from, address, { count: 2 });
        expect({ result, output, from: from.host.name, to: to.host.name }).toMatchObject({
          result: { sent: 2, received: 2 },
        });
      }
      const [first, second] = pods as [Pod, Pod];
      for (const address of second.addresses) {
        const { bytes } = await tcpTransfer(first, second, address);
        expect(bytes).toBeGreaterThan(32 * 1024 * 1024);
        const size = mtu - ECHO_HEADERS[address.includes(":") ? "ipv6" : "ipv4"];
        const fits = await ping(first, address, { count: 1, size, dontFragment: true });
        const exceeds = await ping(first, address, { count: 1, size: size + 1, dontFragment: true });
        expect({ fits: fits.received, exceeds: exceeds.received }).toEqual({ fits: 1, exceeds: 0 });
      }
    },
    TIMEOUT,
  );
});

/** Every ordered pair of pods with every address of the second. */
function pairs(pods: readonly Pod[]): readonly (readonly [Pod, Pod, string])[] {
  return pods.flatMap((from) =>
    pods
      .filter((to) => to !== from)
      .flatMap((to) => to.addresses.map((address) => [from, to, address] as const)),
  );
}
