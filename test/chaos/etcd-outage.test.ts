/**
 * etcd is silent for longer than the leases live, or comes back empty: nodes keep their subnets, pods notice nothing.
 *
 *   pod ── cni0 ── h1 ── ext0 ─┬─ switch + etcd ─┬─ ext0 ── h2 ── cni0 ── pod
 *                              └───── ext0 ──────┘
 *                                      h3
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync, statSync } from "node:fs";
import { ownLease, storedLeases } from "../e2e/leases.ts";
import { Cluster, networkConfig } from "../lab/cluster.ts";
import type { Daemon } from "../lab/daemon.ts";
import { KernelMonitor } from "../lab/kernel-monitor.ts";
import { expectInSync } from "../lab/oracle.ts";
import { PingFlow } from "../lab/ping-flow.ts";
import type { Pod } from "../lab/pod.ts";
import { until } from "../lab/until.ts";

const TIMEOUT = 60_000;
/** The shortest there is. */
const TTL_MS = 5_000;
const flags = [`--subnet-lease-ttl=${TTL_MS}ms`];

let cluster: Cluster;
let daemons: Daemon[] = [];

beforeAll(async () => {
  cluster = await Cluster.create({ hosts: 3, config: networkConfig("v4") });
  daemons = [...(await cluster.startDaemons({ flags }))];
  await cluster.addPods();
  await expectInSync(cluster.hosts, cluster.etcd);
}, TIMEOUT);
afterAll(() => cluster[Symbol.asyncDispose]());

/** What must not change while etcd is away, by host. */
async function remember() {
  return Promise.all(
    cluster.hosts.map(async (host) => {
      const { ino, mtimeMs } = statSync(host.subnetFile);
      const { key, value, modRevision } = (await ownLease(cluster, host))!;
      return { kept: { ino, mtimeMs, text: readFileSync(host.subnetFile, "utf8"), key, value }, modRevision };
    }),
  );
}

test(
  "in a healthy cluster renewals write nothing and say nothing",
  async () => {
    const [revision, before] = [await cluster.etcd.revision(), await storedLeases(cluster)];
    const lines = daemons.map((daemon) => daemon.lines.length);
    await Bun.sleep(2.2 * TTL_MS);
    expect(await storedLeases(cluster)).toEqual(before);
    expect(await cluster.etcd.revision()).toBe(revision);
    expect(daemons.map((daemon) => daemon.lines.length)).toEqual(lines);
  },
  TIMEOUT,
);

test(
  "etcd is frozen for longer than the leases live; one daemon is restarted meanwhile, one is late",
  async () => {
    const [h1, h2, h3] = cluster.hosts;
    const [p1, p2] = cluster.pods as [Pod, Pod];
    const before = await remember();
    await using flow = await PingFlow.start(p1, p2.ipv4, { rate: 50 });
    await using monitor = await KernelMonitor.start(h1!);
    await using third = await KernelMonitor.start(h3!);
    cluster.etcd.pause();
    await daemons[1]!.kill();
    daemons[1] = cluster.startDaemon(h2!, { flags });
    await Bun.sleep(1.6 * TTL_MS);
    // One node is slow to come back: its key is gone for a while, and its peers must not care.
    daemons[2]!.pause();
    cluster.etcd.resume();
    await daemons[1].ready;
    expect(await ownLease(cluster, h3!)).toBeUndefined();
    await Bun.sleep(1_500);
    daemons[2]!.resume();
    await until(
      async () => {
        const now = await Promise.all(cluster.hosts.map((host) => ownLease(cluster, host)));
        // Written anew, so they were gone: the test is none otherwise.
        return now.every((lease, n) => lease !== undefined && lease.modRevision > before[n]!.modRevision);
      },
      { message: () => `every lease is taken back\n${daemons.map((daemon) => daemon.tail(6)).join("\n")}` },
    );
    await expectInSync(cluster.hosts, cluster.etcd);
    expect((await remember()).map(({ kept }) => kept)).toEqual(before.map(({ kept }) => kept));
    // Held-back removals would come now, if at all.
    await flow.expectAnswers(6 * 50, 20_000);
    expect(await flow.stop()).toMatchObject({ lost: 0 });
    expect(await monitor.stop()).toEqual([]);
    expect(await third.stop()).toEqual([]);
    // The trouble of each loop is told when it begins, not with every try.
    for (const daemon of daemons) {
      const told = daemon.lines.filter(({ level }) => level === "error" || level === "warn");
      expect({ told, few: told.length <= 6 }).toMatchObject({ few: true });
    }
  },
  TIMEOUT,
);

test(
  "etcd comes back empty, and one daemon is restarted meanwhile",
  async () => {
    const [h1, h2] = cluster.hosts;
    const [p1, p2] = cluster.pods as [Pod, Pod];
    const before = await remember();
    await using flow = await PingFlow.start(p1, p2.ipv4, { rate: 50 });
    await using monitor = await KernelMonitor.start(h1!);
    await daemons[1]!.kill();
    await cluster.etcd.restart({ wipe: true });
    daemons[1] = cluster.startDaemon(h2!, { flags });
    // The running ones need no config to write their leases again; the new one waits for it.
    await daemons[1].waitForLog(({ code }) => code === "CONFIG_MISSING");
    await until(async () => (await storedLeases(cluster)).length === 2, {
      message: () => `two leases are back\n${daemons[0]!.tail()}`,
    });
    await cluster.configure(networkConfig("v4"));
    await daemons[1].ready;
    await expectInSync(cluster.hosts, cluster.etcd);
    expect((await remember()).map(({ kept }) => kept)).toEqual(before.map(({ kept }) => kept));
    expect(await flow.stop()).toMatchObject({ lost: 0 });
    expect(await monitor.stop()).toEqual([]);
  },
  TIMEOUT,
);
