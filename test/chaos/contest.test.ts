/**
 * Two nodes and one subnet: a node that etcd has not heard of for longer than its lease lives finds it given away.
 *
 *   h1 ── ext0 ─┬─ switch + etcd ─┬─ ext0 ── h2
 *               └───── ext0 ──────┘
 *                       h3
 */
import { expect, test } from "bun:test";
import { ownLease, storedLeases } from "../e2e/leases.ts";
import { Cluster, networkConfig, PREFIX } from "../lab/cluster.ts";
import type { Host } from "../lab/host.ts";
import { expectInSync } from "../lab/oracle.ts";
import { until } from "../lab/until.ts";

const TTL_MS = 5_000;
const flags = [`--subnet-lease-ttl=${TTL_MS}ms`];

test("the newer owner keeps the key, the other one reports the conflict, and a third node stays with the owner", async () => {
  // Two subnets, and one more that is taken for the time being.
  const config = { ...networkConfig("v4"), SubnetMin: "10.244.1.0", SubnetMax: "10.244.3.0" };
  await using cluster = await Cluster.create({ hosts: 3, config });
  const [h1, h2, h3] = cluster.hosts as [Host, Host, Host];
  const blocker = `${PREFIX}/subnets/10.244.3.0-24`;
  await cluster.etcd.ctl("put", blocker, '{"PublicIP":"192.0.2.99"}');
  const loser = cluster.startDaemon(h1, { flags });
  const third = cluster.startDaemon(h3, { flags });
  await Promise.all([loser.ready, third.ready]);
  const { key } = (await ownLease(cluster, h1))!;

  await h1.separateFromEtcd();
  await until(async () => (await ownLease(cluster, h1)) === undefined, {
    message: "the lease of h1 has run out",
  });
  const winner = cluster.startDaemon(h2, { flags });
  await winner.ready;
  const taken = (await ownLease(cluster, h2))!;
  expect(taken.key).toBe(key);
  await h1.reuniteWithEtcd();
  const conflict = await loser.waitForLog(({ code }) => code === "LEASE_CONFLICT");
  expect(conflict).toMatchObject({ level: "error", fix: expect.stringMatching(/restart/) });
  expect(conflict.msg).toContain(key);
  expect(conflict.msg).toContain("192.0.2.1");
  expect(conflict.msg).toContain("192.0.2.2");
  expect(conflict.msg).toContain("another node wrote it");

  // Two renewals of either, and several tries of the one that lost.
  await Bun.sleep(1.5 * TTL_MS);
  const later = (await storedLeases(cluster)).find((lease) => lease.key === key);
  expect(later).toEqual(taken);
  await expectInSync([h2, h3], cluster.etcd);
  expect(loser.running).toBe(true);
  expect(loser.lines.filter(({ code }) => code === "LEASE_CONFLICT")).toHaveLength(1);
  expect(winner.lines.filter(({ level }) => level === "error")).toEqual([]);

  // What the fix says: a restart of the one that lost, which takes another subnet.
  await cluster.etcd.ctl("del", blocker);
  await loser.stop();
  const again = cluster.startDaemon(h1, { flags });
  await again.ready;
  expect((await ownLease(cluster, h1))?.key).toBe("10.244.3.0-24");
  await expectInSync(cluster.hosts, cluster.etcd);
}, 60_000);
