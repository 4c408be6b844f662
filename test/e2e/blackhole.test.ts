/**
 * `--ip-blackhole-route`: what is sent to an address of the node's subnet that no pod has ends on the node.
 *
 *   pod ── cni0 ── h1 ── ext0 ─┬─ switch + etcd
 *   pod ── cni0 ── h2 ── ext0 ─┘
 */
import { expect, test } from "bun:test";
import { Cluster, networkConfig } from "../lab/cluster.ts";
import type { Host } from "../lab/host.ts";
import { expectInSync } from "../lab/oracle.ts";
import { ping } from "../lab/ping.ts";
import { POD_BRIDGE, type Pod } from "../lab/pod.ts";
import { readSubnetFile } from "../lab/subnet-file.ts";
import { until } from "../lab/until.ts";
import { readStatus } from "./ask.ts";
import { routeOutside } from "./outside.ts";

/** Number of an address in the subnet that no pod has. */
const UNUSED = 77;

test("packets to nobody are dropped here, pods are reached, and without the flag the routes go", async () => {
  await using cluster = await Cluster.create({ hosts: 2, family: "dual", config: networkConfig("dual") });
  const [h1, h2] = cluster.hosts as [Host, Host];
  const daemon = cluster.startDaemon(h1, { flags: ["--ip-blackhole-route"] });
  await Promise.all([daemon.ready, cluster.startDaemon(h2).ready]);
  const [p1, p2] = (await cluster.addPods()) as [Pod, Pod];
  const p3 = await cluster.addPod(h1, 2);
  for (const host of cluster.hosts) await routeOutside(host);
  const unused = await unusedAddresses(h1);
  expect(await blackholes(h1)).toHaveLength(2);

  // Local pods, each other and from the other host.
  for (const pod of [p2, p3]) {
    for (const address of p1.addresses) expect((await ping(pod, address, { count: 2 })).received).toBe(2);
  }
  expect((await readStatus(h1)).findings).toEqual([]);

  // Without a bridge, as on a node with no pod yet: the default route would send these packets out again.
  await h1.namespace.ip(`link set ${POD_BRIDGE} down`);
  await using wire = await countForwarded(h1);
  for (const address of unused) expect((await ping(cluster.switch, address, { count: 2 })).received).toBe(0);
  expect(await wire.packets()).toBe(0);

  expect(await daemon.stop()).toMatchObject({ code: 0 });
  await cluster.startDaemon(h1).ready;
  await until(async () => (await blackholes(h1)).length === 0, {
    message: async () => `still there: ${(await blackholes(h1)).join("; ")}`,
  });
  await expectInSync(cluster.hosts, cluster.etcd);
  for (const address of unused) await ping(cluster.switch, address, { count: 2 });
  expect(await wire.packets()).toBeGreaterThan(0);
}, 90_000);

test.each(["udp", "extension"])(
  "with %s, a route deleted by hand is back",
  async (Type) => {
    await using cluster = await Cluster.create({ hosts: 1, config: networkConfig("v4", { Type }) });
    const [host] = cluster.hosts as [Host];
    const daemon = cluster.startDaemon(host, { flags: ["--ip-blackhole-route"] });
    await daemon.ready;
    const made = await blackholes(host);
    expect(made).toHaveLength(1);
    await host.namespace.ip(`route delete ${made[0]}`);
    await until(async () => Bun.deepEquals(await blackholes(host), made), {
      message: () => `it stayed away\n${daemon.tail()}`,
      deadline: 10_000,
    });
  },
  60_000,
);

/** The blackhole routes of a host, as `ip` prints them. */
async function blackholes(host: Host): Promise<readonly string[]> {
  const listings = [
    await host.namespace.ip("route show type blackhole"),
    await host.namespace.ip("-6 route show type blackhole"),
  ];
  return listings.join("\n").split("\n").filter(Boolean);
}

async function unusedAddresses(host: Host): Promise<readonly string[]> {
  const { subnet = "", ipv6Subnet = "" } = await readSubnetFile(host.subnetFile);
  return [subnet, ipv6Subnet].map((gateway) => gateway.replace(/1\/\d+$/, String(UNUSED)));
}

/** Counts the packets that a host sends on through its underlay interface to addresses of pods. */
async function countForwarded(host: Host) {
  await host.namespace.exec(
    "nft",
    `add table inet wire
     add counter inet wire sent
     add chain inet wire forward { type filter hook forward priority 0; }
     add rule inet wire forward ip daddr 10.244.0.0/16 oifname "ext0" counter name sent
     add rule inet wire forward ip6 daddr fd00:10:244::/48 oifname "ext0" counter name sent`,
  );
  return {
    async packets(): Promise<number | undefined> {
      const { nftables } = await host.namespace.json(
        "nft",
        "-j",
        "list",
        "counters",
        "table",
        "inet",
        "wire",
      );
      return nftables.flatMap(({ counter }) => counter?.packets ?? [])[0];
    },
    [Symbol.asyncDispose]: async () =>
      void (await host.namespace.exec("nft", "delete", "table", "inet", "wire")),
  };
}
