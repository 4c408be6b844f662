/**
 * The network config is changed while the daemons are down: after the next start every host looks like one that never
 * knew the old config, and pods wired anew reach each other.
 *
 *   pod ── cni0 ── h1 ── ext0 ─┬─ switch + etcd ─┬─ ext0 ── h2 ── cni0 ── pod
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { Cluster, type NetworkConfig, networkConfig } from "../lab/cluster.ts";
import { expectInSync } from "../lab/oracle.ts";
import { ping } from "../lab/ping.ts";
import { Pod } from "../lab/pod.ts";
import { readSubnetFile } from "../lab/subnet-file.ts";
import { until } from "../lab/until.ts";
import { storedLeases } from "./leases.ts";

const TIMEOUT = 60_000;

let cluster: Cluster;

beforeAll(async () => {
  cluster = await Cluster.create({ hosts: 2, family: "dual", config: networkConfig("v4") });
  for (const daemon of await cluster.startDaemons()) await daemon.stop();
}, TIMEOUT);
afterAll(() => cluster[Symbol.asyncDispose]());

// In a row: each step starts from what the one before left.
test.each<[name: string, config: NetworkConfig, devices: string[], keepsSubnets: boolean]>([
  ["vxlan to host-gw", networkConfig("v4", { Type: "host-gw" }), [], true],
  ["host-gw to vxlan with another VNI", networkConfig("v4", { Type: "vxlan", VNI: 5 }), ["flannel.5"], true],
  ["another VNI and port", networkConfig("v4", { Type: "vxlan", VNI: 6, Port: 4790 }), ["flannel.6"], true],
  ["another port alone", networkConfig("v4", { Type: "vxlan", VNI: 6 }), ["flannel.6"], true],
  ["IPv6 added", networkConfig("dual", { Type: "vxlan", VNI: 6 }), ["flannel-v6.6", "flannel.6"], true],
  ["IPv6 removed", networkConfig("v4", { Type: "vxlan", VNI: 6 }), ["flannel.6"], true],
  [
    "another subnet length",
    { ...networkConfig("v4", { Type: "vxlan", VNI: 6 }), SubnetLen: 26 },
    ["flannel.6"],
    false,
  ],
  ["another network", { Network: "10.99.0.0/16", Backend: { Type: "vxlan", VNI: 6 } }, ["flannel.6"], false],
])(
  "%s",
  async (_, config, devices, keepsSubnets) => {
    const before = await Promise.all(cluster.hosts.map((host) => readSubnetFile(host.subnetFile)));
    await cluster.configure(config);
    const daemons = await cluster.startDaemons();
    await expectInSync(cluster.hosts, cluster.etcd);
    for (const [n, host] of cluster.hosts.entries()) {
      const links: { ifname: string }[] = await host.namespace.json(
        "ip",
        "-j",
        "link",
        "show",
        "type",
        "vxlan",
      );
      expect(links.map(({ ifname }) => ifname).sort()).toEqual(devices);
      const { subnet } = await readSubnetFile(host.subnetFile);
      if (keepsSubnets) expect(subnet).toBe(before[n]?.subnet);
      else expect(subnet).not.toBe(before[n]?.subnet);
    }
    // The old keys are gone, too.
    expect(await storedLeases(cluster)).toHaveLength(2);
    await using p1 = await Pod.create(cluster.hosts[0]!, { number: 1 });
    await using p2 = await Pod.create(cluster.hosts[1]!, { number: 1 });
    for (const address of p2.addresses) {
      await until(async () => (await ping(p1, address, { count: 1 })).received === 1, {
        message: `${address} is not reached`,
      });
    }
    for (const host of cluster.hosts) await host.namespace.ip("link del cni0");
    for (const daemon of daemons) await daemon.stop();
  },
  TIMEOUT,
);
