/**
 * Upgrade in place from upstream's daemon, node after node, under pings: what upstream's leaves (leases, devices, routes
 * without our mark, rules, subnet files; shapes recorded from v0.28) is taken over as it is.
 *
 *   pod ── cni0 ── h1 (as upstream left it) ─┬─ switch + etcd ─┬─ h2 (the same) ── cni0 ── pod
 */
import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { Cluster, type NetworkConfig, operatorConfig, PREFIX } from "../lab/cluster.ts";
import type { Host } from "../lab/host.ts";
import { expectInSync } from "../lab/oracle.ts";
import { PingFlow } from "../lab/ping-flow.ts";
import type { Pod } from "../lab/pod.ts";
import { until } from "../lab/until.ts";
import { ownLease } from "./leases.ts";

const TIMEOUT = 90_000;
const NETWORKS = { 4: "10.244.0.0/16", 6: "fd00:10:244::/48" } as const;
const MULTICAST = { 4: "224.0.0.0/4", 6: "ff00::/8" } as const;
type Version = 4 | 6;

/** Base addresses of a node's subnets, and the MAC addresses of its devices. */
interface Node {
  readonly 4: string;
  readonly 6: string;
  readonly mac: Readonly<Record<Version, string>>;
}
const NODES: readonly [Node, Node] = [
  { 4: "10.244.1.0", 6: "fd00:10:244:2f::", mac: { 4: "76:af:5e:12:2e:67", 6: "ce:56:24:8b:56:10" } },
  { 4: "10.244.2.0", 6: "fd00:10:244:25::", mac: { 4: "ba:43:4f:b3:40:8d", 6: "fa:34:c4:fb:6f:b0" } },
];
const subnetOf = (node: Node, version: Version) => `${node[version]}/${version === 4 ? 24 : 64}`;

interface Case {
  readonly name: string;
  readonly config: NetworkConfig;
  readonly versions: readonly Version[];
  readonly vni?: number;
  readonly rules: "iptables" | "nftables";
}

const CASES: readonly Case[] = [
  { name: "vxlan, iptables", config: operatorConfig("v4"), versions: [4], vni: 1, rules: "iptables" },
  {
    name: "vxlan, dual stack, another VNI and port, iptables",
    config: operatorConfig("dual", { Type: "vxlan", VNI: 5, Port: 4789 }),
    versions: [4, 6],
    vni: 5,
    rules: "iptables",
  },
  {
    name: "vxlan, dual stack, nftables",
    config: { ...operatorConfig("dual"), EnableNFTables: true },
    versions: [4, 6],
    vni: 1,
    rules: "nftables",
  },
  {
    name: "host-gw, iptables",
    config: operatorConfig("v4", { Type: "host-gw" }),
    versions: [4],
    rules: "iptables",
  },
];

test.each(CASES)(
  "$name: not a ping lost, nothing doubled",
  async (each) => {
    const { config, versions } = each;
    await using cluster = await Cluster.create({
      hosts: 2,
      family: versions.length === 1 ? "v4" : "dual",
      config,
    });
    for (const [at, host] of cluster.hosts.entries()) await leaveAsUpstream(cluster, host, at, each);
    const [p1, p2] = (await cluster.addPods()) as [Pod, Pod];
    await using flows = new AsyncDisposableStack();
    const running: PingFlow[] = [];
    for (const address of p2.addresses)
      running.push(flows.use(await PingFlow.start(p1, address, { rate: 100 })));
    const before = await Promise.all(cluster.hosts.map((host) => remember(cluster, host, each)));

    for (const host of cluster.hosts) {
      const daemon = cluster.startDaemon(host, { flags: ["--ip-masq"] });
      await daemon.ready;
      expect(daemon.lines.filter(({ level }) => level !== "info")).toEqual([]);
    }
    await expectInSync(cluster.hosts, cluster.etcd);
    for (const [at, host] of cluster.hosts.entries()) {
      // Upstream's fourth rule of nftables is one that nothing reaches: the table is replaced in one transaction.
      const settled = async () => (await remember(cluster, host, each)).rules;
      await until(async () => each.rules === "iptables" || !(await settled()).join().includes("comment"), {
        message: async () => (await settled()).join("\n"),
      });
      const now = await remember(cluster, host, each);
      const { rules, lease, ...same } = before[at]!;
      expect(now).toMatchObject(same);
      expect(now.lease).toEqual({ ...lease, NodeID: expect.any(String), BootID: expect.any(String) });
      if (each.rules === "iptables") expect(now.rules).toEqual(rules);
      else expect(now.rules).toHaveLength(2);
      // One route to the other node and family, and it is marked.
      for (const version of versions) {
        const subnet = subnetOf(NODES[1 - at]!, version);
        const routes = await host.namespace.exec("ip", `-${version}`, "route", "show", subnet);
        expect(routes.trim().split("\n")).toHaveLength(1);
        expect(routes).toContain("proto 140");
      }
    }
    for (const flow of running) {
      await flow.expectAnswers(20);
      const { sent, ...report } = await flow.stop();
      expect(report).toMatchObject({ lost: 0, duplicates: 0 });
      expect(sent).toBeGreaterThan(50);
    }
  },
  TIMEOUT,
);

/** What must be the same before and after. */
async function remember(cluster: Cluster, host: Host, { versions, vni, rules }: Case) {
  const device = (version: Version) => (version === 4 ? `flannel.${vni}` : `flannel-v6.${vni}`);
  const links: { ifindex: number; address: string }[] = [];
  for (const version of vni === undefined ? [] : versions) {
    const [{ ifindex, address }] = await host.namespace.json("ip", "-j", "link", "show", device(version));
    links.push({ ifindex, address });
  }
  const stored = (await ownLease(cluster, host))!;
  const subnets = readFileSync(host.subnetFile, "utf8")
    .split("\n")
    .filter((line) => !line.startsWith("FLANNEL_MTU"));
  return { key: stored.key, lease: stored.value, links, subnets, rules: await listRules(host, rules) };
}

/** Rules of ours or upstream's: lines of the saves, or tables. */
async function listRules(host: Host, kind: Case["rules"]): Promise<readonly string[]> {
  if (kind === "nftables") {
    const text = await host.namespace.exec("nft", "list", "ruleset");
    return text.split(/^(?=table)/m).filter((table) => table.includes("flannel-ipv"));
  }
  const saved = await host.namespace.exec("sh", "-ec", "iptables-save; ip6tables-save");
  return saved.split("\n").filter((line) => line.includes("FLANNEL-"));
}

async function leaveAsUpstream(cluster: Cluster, host: Host, at: number, each: Case): Promise<void> {
  const { versions, vni, config, rules } = each;
  const [own, other] = [NODES[at]!, NODES[1 - at]!];
  const peer = cluster.hosts[1 - at]!;
  const isDual = versions.includes(6);
  const data = (version: Version) => ({ VNI: vni, VtepMAC: own.mac[version] });
  const value = {
    PublicIP: host.ipv4,
    PublicIPv6: isDual ? host.ipv6 : null,
    BackendType: (config.Backend as { Type: string }).Type,
    ...(vni === undefined ? {} : { BackendData: data(4) }),
    ...(vni !== undefined && isDual ? { BackendV6Data: data(6) } : {}),
  };
  const granted = await cluster.etcd.ctl("lease", "grant", "86400");
  const id = /lease ([0-9a-f]+) granted/.exec(granted)?.[1] ?? "";
  const key = versions.map((version) => subnetOf(own, version).replace("/", "-")).join("&");
  await cluster.etcd.ctl("put", `--lease=${id}`, `${PREFIX}/subnets/${key}`, JSON.stringify(value));

  const port = (config.Backend as { Port?: number }).Port ?? 8472;
  const lines = versions.flatMap((version) => {
    if (vni === undefined) return [`ip route add ${subnetOf(other, version)} via ${peer.ipv4} dev ext0`];
    const dev = version === 4 ? `flannel.${vni}` : `flannel-v6.${vni}`;
    const [local, remote] = version === 4 ? [host.ipv4, peer.ipv4] : [host.ipv6, peer.ipv6];
    return [
      `ip link add ${dev} address ${own.mac[version]} mtu ${version === 4 ? 1450 : 1430} type vxlan id ${vni} dev ext0 local ${local} dstport ${port} nolearning`,
      `ip address add ${own[version]}/${version === 4 ? 32 : 128} dev ${dev}`,
      `ip link set ${dev} up`,
      `ip neighbour add ${other[version]} lladdr ${other.mac[version]} nud permanent dev ${dev}`,
      `bridge fdb add ${other.mac[version]} dst ${remote} self permanent dev ${dev}`,
      `ip route add ${subnetOf(other, version)} via ${other[version]} dev ${dev} onlink`,
    ];
  });
  await host.namespace.exec("sh", "-ec", lines.join("\n"));
  for (const version of versions) await setRules(host, own, version, rules);
  writeFileSync(
    host.subnetFile,
    [
      `FLANNEL_NETWORK=${NETWORKS[4]}`,
      `FLANNEL_SUBNET=${own[4].replace(/0$/, "1")}/24`,
      ...(isDual ? [`FLANNEL_IPV6_NETWORK=${NETWORKS[6]}`, `FLANNEL_IPV6_SUBNET=${own[6]}1/64`] : []),
      `FLANNEL_MTU=${vni === undefined ? 1500 : isDual ? 1430 : 1450}`,
      "FLANNEL_IPMASQ=true",
      "",
    ].join("\n"),
  );
}

/** The rules in upstream's words and order. */
async function setRules(host: Host, own: Node, version: Version, kind: Case["rules"]): Promise<void> {
  const [N, S, M] = [NETWORKS[version], subnetOf(own, version), MULTICAST[version]];
  if (kind === "nftables") {
    const ip = version === 4 ? "ip" : "ip6";
    const text = `table ${ip} flannel-ipv${version} {
  comment "rules for flannel-ipv${version}"
  chain postrtg {
    comment "chain to manage traffic masquerading by flannel"
    type nat hook postrouting priority srcnat; policy accept;
    meta mark 0x00004000 return
    ${ip} saddr ${S} ${ip} daddr ${N} return
    ${ip} saddr ${N} ${ip} daddr ${S} return
    ${ip} saddr != ${S} ${ip} daddr ${N} return
    ${ip} saddr ${N} ${ip} daddr != ${M} masquerade fully-random
    ${ip} saddr != ${N} ${ip} daddr ${N} masquerade fully-random
  }
  chain forward {
    comment "chain to accept flannel traffic"
    type filter hook forward priority filter; policy accept;
    ${ip} saddr ${N} accept
    ${ip} daddr ${N} accept
  }
}`;
    await host.namespace.exec("nft", text);
    return;
  }
  const [masq, forward] = ["masq", "forward"].map((word) => `-m comment --comment "flanneld ${word}"`);
  const text = `*filter
:FLANNEL-FWD - [0:0]
-A FORWARD ${forward} -j FLANNEL-FWD
-A FLANNEL-FWD -s ${N} ${forward} -j ACCEPT
-A FLANNEL-FWD -d ${N} ${forward} -j ACCEPT
COMMIT
*nat
:FLANNEL-POSTRTG - [0:0]
-A POSTROUTING ${masq} -j FLANNEL-POSTRTG
-A FLANNEL-POSTRTG -m mark --mark 0x4000/0x4000 ${masq} -j RETURN
-A FLANNEL-POSTRTG -s ${S} -d ${N} ${masq} -j RETURN
-A FLANNEL-POSTRTG -s ${N} -d ${S} ${masq} -j RETURN
-A FLANNEL-POSTRTG ! -s ${N} -d ${S} ${masq} -j RETURN
-A FLANNEL-POSTRTG -s ${N} ! -d ${M} ${masq} -j MASQUERADE --random-fully
-A FLANNEL-POSTRTG ! -s ${N} -d ${N} ${masq} -j MASQUERADE --random-fully
COMMIT
`;
  const command = version === 4 ? "iptables-restore" : "ip6tables-restore";
  const { exitCode, stderr } = await host.namespace.run([command, "--noflush"], { input: text });
  if (exitCode !== 0) throw new Error(stderr);
}
