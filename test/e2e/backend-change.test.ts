/**
 * The backend of a running cluster is changed: the daemons say what to do, one restart per node does it. Subnets and
 * pods stay, and nothing of the old backend is there any more when the new subnet file appears.
 *
 *   pod ── cni0 ── h1 ── ext0 ─┬─ switch + etcd ─┬─ ext0 ── h2 ── cni0 ── pod
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { watch } from "node:fs";
import { basename } from "node:path";
import { Cluster, networkConfig } from "../lab/cluster.ts";
import type { Daemon } from "../lab/daemon.ts";
import type { Host } from "../lab/host.ts";
import { expectInSync } from "../lab/oracle.ts";
import { PingFlow } from "../lab/ping-flow.ts";
import type { Pod } from "../lab/pod.ts";
import { readSubnetFile } from "../lab/subnet-file.ts";
import { readStatus } from "./ask.ts";
import { storedLeases } from "./leases.ts";

const TIMEOUT = 60_000;
/** Two daemons start in well under a second on a quiet machine; nothing passes while the nodes disagree. */
const LONGEST_GAP_MS = 5_000;
const FLAGS = ["--ip-masq"];

let cluster: Cluster;
let daemons: readonly Daemon[] = [];

beforeAll(async () => {
  cluster = await Cluster.create({ hosts: 2, family: "dual" });
  daemons = await cluster.startDaemons({ flags: FLAGS });
  await cluster.addPods();
}, TIMEOUT);
afterAll(() => cluster[Symbol.asyncDispose]());

/** Devices of any backend, and where marked routes go: `flannel.1`, `10.244.7.0/24 dev flannel.1`. */
async function dataPath(host: Host): Promise<readonly string[]> {
  const text = await host.namespace.exec(
    "sh",
    "-ec",
    "ip -o link show | cut -d: -f2 | grep flannel || true; ip route show proto 140; ip -6 route show proto 140",
  );
  return text
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => /^(\S+) .*(dev \S+)/.exec(line)?.slice(1).join(" ") ?? line.trim())
    .sort();
}

/** What is there in the moment in which a daemon has written its subnet file: it is stopped then for the look. */
function atSubnetFile(
  host: Host,
  daemon: () => Daemon,
): { readonly seen: Promise<readonly string[]> } & Disposable {
  const { promise, resolve, reject } = Promise.withResolvers<readonly string[]>();
  const watcher = watch(host.directory, (_, name) => {
    if (name !== basename(host.subnetFile)) return;
    watcher.close();
    daemon().pause();
    dataPath(host)
      .finally(() => daemon().resume())
      .then(resolve, reject);
  });
  return { seen: promise, [Symbol.dispose]: () => watcher.close() };
}

// In a row: each step starts from what the one before left.
test.each([
  ["vxlan to host-gw", { Type: "host-gw" }, [], "ext0"],
  ["host-gw to vxlan", { Type: "vxlan", VNI: 5 }, ["flannel-v6.5", "flannel.5"], "flannel"],
  ["vxlan to host-gw once more", { Type: "host-gw" }, [], "ext0"],
  [
    "host-gw to direct routing",
    { Type: "vxlan", DirectRouting: true },
    ["flannel-v6.1", "flannel.1"],
    "ext0",
  ],
])(
  "%s",
  async (_, backend, devices, way) => {
    const [p1, p2] = cluster.pods as [Pod, Pod];
    const before = await Promise.all(cluster.hosts.map((host) => readSubnetFile(host.subnetFile)));
    await using flow4 = await PingFlow.start(p1, p2.ipv4, { rate: 100 });
    await using flow6 = await PingFlow.start(p1, p2.ipv6, { rate: 100 });

    await cluster.configure(networkConfig("dual", backend));
    for (const [at, host] of cluster.hosts.entries()) {
      await daemons[at]!.waitForLog(({ code }) => code === "CONFIG_NEEDS_RESTART");
      const told = (await readStatus(host)).findings.find(({ code }) => code === "CONFIG_NEEDS_RESTART");
      expect(told).toMatchObject({
        severity: "warning",
        text: expect.stringContaining("Backend.Type"),
        fix: expect.stringContaining("`systemctl restart flanneld`"),
      });
    }
    const next: Daemon[] = [];
    using w1 = atSubnetFile(cluster.hosts[0]!, () => next[0]!);
    using w2 = atSubnetFile(cluster.hosts[1]!, () => next[1]!);
    await Promise.all(daemons.map((daemon) => daemon.stop()));
    next.push(...cluster.hosts.map((host) => cluster.startDaemon(host, { flags: FLAGS })));
    for (const seen of await Promise.all([w1.seen, w2.seen])) {
      const [own, routes] = [
        seen.filter((line) => !line.includes(" ")),
        seen.filter((line) => line.includes(" ")),
      ];
      expect(own).toEqual(devices);
      // Whatever is routed already is routed the new way.
      for (const route of routes) expect(route).toContain(way === "ext0" ? "dev ext0" : "dev flannel");
    }
    await Promise.all(next.map((daemon) => daemon.ready));
    daemons = next;
    await flow4.expectAnswers(50);
    await flow6.expectAnswers(50);

    await expectInSync(cluster.hosts, cluster.etcd);
    for (const [at, host] of cluster.hosts.entries()) {
      const { subnet, ipv6Subnet } = await readSubnetFile(host.subnetFile);
      expect({ subnet, ipv6Subnet }).toEqual({
        subnet: before[at]!.subnet!,
        ipv6Subnet: before[at]!.ipv6Subnet!,
      });
      const routes = (await dataPath(host)).filter((line) => line.includes(" "));
      expect(routes).toHaveLength(2);
      for (const route of routes) expect(route).toContain(`dev ${way}`);
    }
    expect(await storedLeases(cluster)).toHaveLength(2);
    for (const flow of [flow4, flow6]) {
      const { lost, longestGap, duplicates } = await flow.stop();
      expect(duplicates).toBe(0);
      expect(longestGap).toBeLessThan(LONGEST_GAP_MS);
      expect(lost * 10).toBeLessThan(LONGEST_GAP_MS);
    }
  },
  TIMEOUT,
);
