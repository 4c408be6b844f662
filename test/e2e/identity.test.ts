/**
 * Whose lease is whose: reservations, changed addresses, shared addresses, cloned machines.
 *
 *   h1 ── ext0 ─┬─ switch + etcd ─┬─ ext0 ── h3
 *   h2 ── ext0 ─┘                 └─ ext0 ── h4
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { Cluster, daemonSubnet, networkConfig, PREFIX } from "../lab/cluster.ts";
import type { Daemon } from "../lab/daemon.ts";
import type { Host } from "../lab/host.ts";
import { expectInSync } from "../lab/oracle.ts";
import { until } from "../lab/until.ts";
import { ownLease, storedLeases } from "./leases.ts";
import { expectRefusal } from "./refusal.ts";

const TIMEOUT = 60_000;

let cluster: Cluster;
let [h1, h2, h3, h4]: Host[] = [];

beforeAll(async () => {
  cluster = await Cluster.create({ hosts: 4, config: networkConfig("v4") });
  [h1, h2, h3, h4] = cluster.hosts;
}, TIMEOUT);
afterAll(() => cluster[Symbol.asyncDispose]());

test(
  "a reservation is taken and stays one, over three restarts",
  async () => {
    const key = `${daemonSubnet(50)}-24`;
    await cluster.etcd.ctl("put", `${PREFIX}/subnets/${key}`, '{"PublicIP":"192.0.2.1"}');
    for (let run = 1; run <= 3; run++) {
      const daemon = cluster.startDaemon(h1!);
      await daemon.ready;
      const lease = await ownLease(cluster, h1!);
      expect(lease).toMatchObject({ key, lease: "0" });
      expect(lease?.value).toMatchObject({ BackendType: "vxlan", NodeID: expect.any(String) });
      await daemon.stop();
    }
    expect(await ownLease(cluster, h1!)).toMatchObject({ key, lease: "0" });
  },
  TIMEOUT,
);

test(
  "a node whose address changed keeps its subnet, and the others follow",
  async () => {
    const [first, third] = [cluster.startDaemon(h1!), cluster.startDaemon(h3!)];
    await Promise.all([first.ready, third.ready]);
    const before = (await ownLease(cluster, h1!))!;
    await first.stop();
    await h1!.namespace.exec(
      "sh",
      "-ec",
      `ip address del 192.0.2.1/24 dev ext0
       ip address add 192.0.2.77/24 dev ext0
       ip route add default via 192.0.2.254 dev ext0`,
    );
    const again = cluster.startDaemon(h1!);
    await again.ready;
    const leases = await storedLeases(cluster);
    const after = leases.find(({ key }) => key === before.key);
    expect(after?.value).toMatchObject({ PublicIP: "192.0.2.77", NodeID: before.value?.NodeID });
    expect(leases.filter(({ value }) => value?.NodeID === before.value?.NodeID)).toHaveLength(1);
    await expectInSync([h1!, h3!], cluster.etcd);
    await Promise.all([again.stop(), third.stop()]);
  },
  TIMEOUT,
);

test(
  "the same address under another id is refused, naming both, and the first node is not disturbed",
  async () => {
    const first = cluster.startDaemon(h2!, { nodeId: "rack1-a" });
    await first.ready;
    const lease = await ownLease(cluster, h2!);
    const refusal = await expectRefusal(cluster, h4!, {
      nodeId: "rack2-b",
      flags: ["--public-ip=192.0.2.2"],
    });
    expect(refusal.code).toBe("LEASE_CLASH");
    expect(refusal.message).toContain("192.0.2.2");
    expect(refusal.message).toContain("rack1-a");
    expect(refusal.message).toContain("rack2-b");
    expect(refusal.message).toContain(lease!.key);
    expect(await ownLease(cluster, h2!)).toEqual(lease);
    expect(first.running).toBe(true);
    expect(first.lines.filter(({ level }) => level !== "info")).toEqual([]);
    await first.stop();
  },
  TIMEOUT,
);

test(
  "one id on two living machines ends in one visible conflict that names both, not in a tug of war",
  async () => {
    const clone = { nodeId: "golden-image", flags: ["--subnet-lease-ttl=5s", "--etcd-prefix=/clones"] };
    await cluster.etcd.ctl("put", "/clones/config", JSON.stringify(networkConfig("v4", { Type: "alloc" })));
    const original = cluster.startDaemon(h3!, clone);
    await original.ready;
    const copy = cluster.startDaemon(h4!, clone);
    const conflict = (daemon: Daemon) => daemon.lines.filter(({ code }) => code === "LEASE_CONFLICT");
    await until(() => conflict(original).length + conflict(copy).length > 0, {
      message: () => `a conflict is reported\n${original.tail()}\n${copy.tail()}`,
    });
    // The key has settled: it is not written any more, over several renewals.
    const [settled] = await storedLeases(cluster, "/clones");
    await Bun.sleep(4_000);
    const [later] = await storedLeases(cluster, "/clones");
    expect(later?.modRevision).toBe(settled!.modRevision);
    const told = [...conflict(original), ...conflict(copy)];
    expect(told).toHaveLength(1);
    expect(told[0]?.msg).toContain("192.0.2.3");
    expect(told[0]?.msg).toContain("192.0.2.4");
    expect(told[0]?.msg).toContain("golden-image");
    await Promise.all([original.stop(), copy.stop()]);
  },
  TIMEOUT,
);
