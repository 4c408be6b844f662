/**
 * One cluster of upstream's nodes and ours. Upstream's are their leases, byte for byte as v0.28 and v0.13 write them,
 * and the kernel objects they make.
 *
 *   pod ─ h1 (this daemon) ─┬─ switch + etcd ─┬─ h2 (as v0.28, dual stack) ─ pod
 *                           └─────────────────┴─ h3 (as v0.13, IPv4 only) ─ pod
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { Cluster, networkConfig, operatorConfig, PREFIX } from "../lab/cluster.ts";
import type { Host } from "../lab/host.ts";
import { expectInSync } from "../lab/oracle.ts";
import { ping } from "../lab/ping.ts";
import { PingFlow } from "../lab/ping-flow.ts";
import type { Pod } from "../lab/pod.ts";
import { ownLease, storedLeases } from "./leases.ts";

const TIMEOUT = 60_000;

interface Upstream {
  readonly subnet: string;
  readonly subnet6?: string;
  readonly mac: string;
  readonly mac6?: string;
}

const SECOND = {
  subnet: "10.244.2.0",
  subnet6: "fd00:10:244:50::",
  mac: "ba:21:42:32:b8:7b",
  mac6: "4a:d2:bd:64:ed:1f",
};
const THIRD = { subnet: "10.244.3.0", mac: "82:4b:b6:2f:54:4e" };

let cluster: Cluster;
let [h1, h2, h3]: Host[] = [];

beforeAll(async () => {
  cluster = await Cluster.create({ hosts: 3, family: "dual", config: networkConfig("dual") });
  [h1, h2, h3] = cluster.hosts;
}, TIMEOUT);
afterAll(() => cluster[Symbol.asyncDispose]());

test(
  "our node and upstream's of two generations reach each other",
  async () => {
    await putWithLease(
      `${SECOND.subnet}-24&${SECOND.subnet6}-64`,
      `{"PublicIP":"192.0.2.2","PublicIPv6":"fd00:db8::2","BackendType":"vxlan","BackendData":{"VNI":1,"VtepMAC":"${SECOND.mac}"},"BackendV6Data":{"VNI":1,"VtepMAC":"${SECOND.mac6}"}}`,
    );
    // v0.13 knows neither PublicIPv6 nor VNI.
    await putWithLease(
      `${THIRD.subnet}-24`,
      `{"PublicIP":"192.0.2.3","BackendType":"vxlan","BackendData":{"VtepMAC":"${THIRD.mac}"}}`,
    );
    await makeUpstreamNode(h2!, SECOND);
    await makeUpstreamNode(h3!, THIRD);
    const daemon = cluster.startDaemon(h1!);
    await daemon.ready;

    const own = (await ownLease(cluster, h1!))!;
    expect(own.key).toMatch(/^10\.244\.\d+\.0-24&fd00:10:244:[0-9a-f]+::-64$/);
    // Upstream decodes by name and ignores what it does not know; the order is its own.
    expect(Object.keys(own.value!).slice(0, 5)).toEqual([
      "PublicIP",
      "PublicIPv6",
      "BackendType",
      "BackendData",
      "BackendV6Data",
    ]);
    const { NodeID, BootID, ...known } = own.value!;
    const { BackendData, BackendV6Data } = known as Record<string, { VNI: number; VtepMAC: string }>;
    expect(own.text).toBe(
      `{"PublicIP":"192.0.2.1","PublicIPv6":"fd00:db8::1","BackendType":"vxlan",` +
        `"BackendData":{"VNI":1,"VtepMAC":"${BackendData!.VtepMAC}"},"BackendV6Data":{"VNI":1,"VtepMAC":"${BackendV6Data!.VtepMAC}"},` +
        `"NodeID":"${NodeID}","BootID":"${BootID}"}`,
    );

    const [, v4, v6] = /^(.*)-24&(.*)-64$/.exec(own.key)!;
    for (const [host, node] of [
      [h2!, SECOND],
      [h3!, THIRD],
    ] as const) {
      await learnPeer(host, node, {
        subnet: v4!,
        subnet6: v6!,
        mac: BackendData!.VtepMAC,
        mac6: BackendV6Data!.VtepMAC,
        publicIP: h1!.ipv4,
        publicIPv6: h1!.ipv6,
      });
    }
    await expectInSync([h1!], cluster.etcd);
    const [p1, p2, p3] = (await cluster.addPods()) as [Pod, Pod, Pod];
    expect((await ping(p1, p2.ipv4)).received).toBe(3);
    expect((await ping(p2, p1.ipv6)).received).toBe(3);
    expect((await ping(p3, p1.ipv4)).received).toBe(3);
    expect(daemon.lines.filter(({ level }) => level !== "info")).toEqual([]);
    await daemon.stop();
  },
  TIMEOUT,
);

test(
  "our daemon takes over a node that upstream ran: same subnet, same device, same MAC, no ping lost",
  async () => {
    const [, p2, p3] = cluster.pods as [Pod, Pod, Pod];
    await learnPeer(h2!, SECOND, { ...THIRD, publicIP: h3!.ipv4, publicIPv6: h3!.ipv6 });
    await learnPeer(h3!, THIRD, { ...SECOND, publicIP: h2!.ipv4, publicIPv6: h2!.ipv6 });
    const before = (await storedLeases(cluster)).find(({ key }) => key === `${THIRD.subnet}-24`)!;
    const index = await linkIndex(h3!);
    await using flow = await PingFlow.start(p3, p2.ipv4, { rate: 100 });
    // The cluster of this node is IPv4 only, as v0.13 is: its key must not change its name.
    await cluster.configure(operatorConfig("v4"));
    const daemon = cluster.startDaemon(h3!);
    await daemon.ready;
    await flow.expectAnswers(30);
    const after = (await storedLeases(cluster)).find(({ key }) => key === before.key)!;
    expect(after.value).toMatchObject({
      PublicIP: "192.0.2.3",
      PublicIPv6: null,
      BackendData: { VNI: 1, VtepMAC: THIRD.mac },
      NodeID: expect.any(String),
    });
    expect(await linkIndex(h3!)).toBe(index);
    // Upstream's routes are replaced by ours in place.
    const routes = await h3!.namespace.exec("ip", "route", "show", `${SECOND.subnet}/24`);
    expect(routes.trim().split("\n")).toHaveLength(1);
    expect(routes).toContain("proto 140");
    expect(await flow.stop()).toMatchObject({ lost: 0 });
    await daemon.stop();
  },
  TIMEOUT,
);

async function putWithLease(key: string, value: string): Promise<void> {
  const granted = await cluster.etcd.ctl("lease", "grant", "86400");
  const id = /lease ([0-9a-f]+) granted/.exec(granted)?.[1] ?? "";
  await cluster.etcd.ctl("put", `--lease=${id}`, `${PREFIX}/subnets/${key}`, value);
}

async function linkIndex(host: Host): Promise<number> {
  const [link] = await host.namespace.json("ip", "-j", "link", "show", "flannel.1");
  return link.ifindex;
}

/** The device and the subnet file as upstream leaves them (the MTU of IPv6 is the kernel's doing). */
async function makeUpstreamNode(host: Host, { subnet, subnet6, mac, mac6 }: Upstream): Promise<void> {
  writeFileSync(
    host.subnetFile,
    [
      "FLANNEL_NETWORK=10.244.0.0/16",
      `FLANNEL_SUBNET=${subnet.replace(/0$/, "1")}/24`,
      ...(subnet6 ? ["FLANNEL_IPV6_NETWORK=fd00:10:244::/48", `FLANNEL_IPV6_SUBNET=${subnet6}1/64`] : []),
      "FLANNEL_MTU=1450",
      "FLANNEL_IPMASQ=false",
      "",
    ].join("\n"),
  );
  const device = (dev: string, address: string, local: string, base: string) => `
    ip link add ${dev} address ${address} type vxlan id 1 dev ext0 local ${local} dstport 8472 nolearning
    ip address add ${base} dev ${dev} scope global
    ip link set ${dev} up`;
  await host.namespace.exec(
    "sh",
    "-ec",
    device("flannel.1", mac, host.ipv4, `${subnet}/32`) +
      (subnet6 && mac6 ? device("flannel-v6.1", mac6, host.ipv6, `${subnet6}/128`) : ""),
  );
}

/** What upstream's node programs for a peer. */
async function learnPeer(
  host: Host,
  node: Upstream,
  peer: Upstream & { readonly publicIP: string; readonly publicIPv6: string },
): Promise<void> {
  const entries = (dev: string, base: string, length: number, mac: string, dst: string) => `
    ip neighbour replace ${base} lladdr ${mac} nud permanent dev ${dev}
    bridge fdb replace ${mac} dst ${dst} self permanent dev ${dev}
    ip route replace ${base}/${length} via ${base} dev ${dev} onlink`;
  await host.namespace.exec(
    "sh",
    "-ec",
    entries("flannel.1", peer.subnet, 24, peer.mac, peer.publicIP) +
      (node.subnet6 && peer.subnet6 && peer.mac6
        ? entries("flannel-v6.1", peer.subnet6, 64, peer.mac6, peer.publicIPv6)
        : ""),
  );
}
