/**
 * What the other nodes' keys can look like after a while without looking, and what lies beside them.
 *
 *   h1 ── ext0 ─┬─ switch + etcd ─┬─ ext0 ── h2
 *               └───── ext0 ──────┘
 *                       h3
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { ownLease, putLeases } from "../e2e/leases.ts";
import { Cluster, PREFIX } from "../lab/cluster.ts";
import type { Daemon } from "../lab/daemon.ts";
import type { Host } from "../lab/host.ts";
import { KernelMonitor } from "../lab/kernel-monitor.ts";
import type { LogLine } from "../lab/log-file.ts";
import { expectInSync } from "../lab/oracle.ts";
import { until } from "../lab/until.ts";

const TIMEOUT = 60_000;
const TTL_MS = 5_000;

let cluster: Cluster;
let daemons: readonly Daemon[] = [];
let [h1, h2, h3]: Host[] = [];

beforeAll(async () => {
  cluster = await Cluster.create({ hosts: 3 });
  [h1, h2, h3] = cluster.hosts;
  // The third keeps its lease whatever happens here.
  const flags = (host: Host) => (host === h3 ? [] : [`--subnet-lease-ttl=${TTL_MS}ms`]);
  daemons = cluster.hosts.map((host) => cluster.startDaemon(host, { flags: flags(host) }));
  await Promise.all(daemons.map((daemon) => daemon.ready));
  await expectInSync(cluster.hosts, cluster.etcd);
}, TIMEOUT);
afterAll(() => cluster[Symbol.asyncDispose]());

/** A lease of a node that is not there, in the part of the network that no daemon allocates from. */
const stranger = (n: number, generation: number) => ({
  key: `10.244.${n}.0-24`,
  value: {
    PublicIP: `192.0.2.${200 + (n % 50)}`,
    PublicIPv6: null,
    BackendType: "vxlan",
    BackendData: { VNI: 1, VtepMAC: `02:00:00:0${generation}:00:${n.toString(16).padStart(2, "0")}` },
  },
});

test(
  "keys that are no leases change no route, and each is told once",
  async () => {
    const [peer, other] = [(await ownLease(cluster, h2!))!, (await ownLease(cluster, h3!))!];
    const junk: readonly (readonly [key: string, value: string])[] = [
      ["subnets/.lock", "x"],
      ["subnets/10.244.9.0-33", peer.text],
      ["subnets/x10.244.9.0-24", peer.text],
      ["subnets/10.244.109.0-24", ""],
      ["subnets/10.244.110.0-24", "not JSON"],
      ["subnets/10.244.111.0-24", '{"PublicIP":"fd00::1"}'],
      ["subnets/10.244.112.0-24", '{"PublicIP":null}'],
      ["subnets/10.244.113.1-24", peer.text],
      [`subnets-old/${peer.key}`, peer.text],
      ["subnets", "x"],
      // Siblings of real keys: the same subnet with a second family, and as a part of a wider one.
      [`subnets/${peer.key}&fd00:10:244:1::-64`, peer.text.replace("192.0.2.2", "192.0.2.66")],
      [
        `subnets/${other.key.replace(/-24$/, "-16").replace(/\.\d+\.0-16/, ".0.0-16")}`,
        '{"PublicIP":"192.0.2.67","BackendType":"vxlan","BackendData":{"VtepMAC":"02:00:00:00:00:67"}}',
      ],
    ];
    const [daemon] = daemons as [Daemon];
    const lines = daemon.lines.length;
    await using monitor = await KernelMonitor.start(h1!);
    for (const [key, value] of junk) await cluster.etcd.ctl("put", "--", `${PREFIX}/${key}`, value);
    for (const [key, value] of junk) await cluster.etcd.ctl("put", "--", `${PREFIX}/${key}`, value);
    // A real change behind all of them: it shows that they have been seen.
    await putLeases(cluster, [stranger(120, 1)]);
    await daemon.waitForLog(
      ({ msg, added }) => msg === "peers changed" && `${added}`.includes("10.244.120.0-24"),
      { after: lines },
    );
    for (const [key] of junk) await cluster.etcd.ctl("del", `${PREFIX}/${key}`);
    await cluster.etcd.ctl("del", `${PREFIX}/subnets/10.244.120.0-24`);
    await daemon.waitForLog(
      ({ msg, removed }) => msg === "peers changed" && `${removed}`.includes("10.244.120.0-24"),
      { after: lines },
    );
    await expectInSync(cluster.hosts, cluster.etcd);
    expect(
      (await monitor.stop()).filter(
        (line) =>
          !line.includes("10.244.120.0") && !/02:00:00:01:00:78|\.12000|id \d+ via 10\.244\.120/.test(line),
      ),
    ).toEqual([]);
    const bad = daemon.lines
      .slice(lines)
      .filter(({ code, level }) => code === "LEASE_ENTRY_BAD" && level === "warn");
    expect(bad.map(({ subject }) => subject).sort()).toEqual(
      junk
        .slice(0, 8)
        .map(([key]) => key.replace("subnets/", ""))
        .sort(),
    );
    const rejected = daemon.lines
      .slice(lines)
      .filter(({ code, level }) => code === "PEER_REJECTED" && level !== "info");
    expect(rejected.map(({ subject }) => subject)).toHaveLength(2);
  },
  TIMEOUT,
);

test(
  "a daemon that etcd was out of sight for, through 200 writes and a compaction, lists once and knows the exact set",
  async () => {
    const [, , daemon] = daemons as [Daemon, Daemon, Daemon];
    await putLeases(cluster, generation(1, 60));
    await expectInSync(cluster.hosts, cluster.etcd);
    const own = (await ownLease(cluster, h3!))!;
    const lines = daemon.lines.length;
    await h3!.separateFromEtcd();
    // Only when the daemon has given its connection up is nothing of the writes delivered late.
    const lost = ({ code, subject }: LogLine) =>
      code === "ETCD_UNREACHABLE" && `${subject}`.startsWith("watching");
    await daemon.waitForLog(lost, { after: lines, deadline: 20_000 });
    await rewrite();
    await cluster.etcd.ctl("compact", String(await cluster.etcd.revision()));
    await h3!.reuniteWithEtcd();
    await expectInSync(cluster.hosts, cluster.etcd, { deadline: 20_000 });
    expect(await ownLease(cluster, h3!)).toEqual(own);
    const told = daemon.lines.slice(lines);
    expect(told.filter(({ msg }) => msg === "the leases were listed anew")).toHaveLength(1);
    expect({ told, few: told.length <= 10 }).toMatchObject({ few: true });
  },
  TIMEOUT,
);

test(
  "a daemon that slept through the same and past the end of its lease takes it back, and knows the exact set",
  async () => {
    const [daemon] = daemons as [Daemon];
    await putLeases(cluster, generation(1, 60));
    await expectInSync(cluster.hosts, cluster.etcd);
    const own = (await ownLease(cluster, h1!))!;
    const lines = daemon.lines.length;
    daemon.pause();
    await rewrite();
    await until(async () => (await ownLease(cluster, h1!)) === undefined, {
      message: "the lease of h1 has run out",
    });
    await cluster.etcd.ctl("compact", String(await cluster.etcd.revision()));
    await cluster.etcd.restart();
    daemon.resume();
    await expectInSync(cluster.hosts, cluster.etcd);
    expect(await ownLease(cluster, h1!)).toMatchObject({ key: own.key, value: own.value });
    const told = daemon.lines.slice(lines);
    expect({ told, few: told.length <= 10 }).toMatchObject({ few: true });
  },
  TIMEOUT,
);

/** Leases of nodes that are not there, each generation with MAC addresses of its own. */
function generation(number: number, count: number) {
  return Array.from({ length: count }, (_, n) => stranger(n + 1, number));
}

/** 60 leases with another MAC, 40 new ones, and some of both gone. */
async function rewrite(): Promise<void> {
  await putLeases(cluster, generation(2, 100));
  await putLeases(cluster, generation(3, 100));
  for (const n of [10, 11, 70, 71]) await cluster.etcd.ctl("del", `${PREFIX}/subnets/${stranger(n, 1).key}`);
}
