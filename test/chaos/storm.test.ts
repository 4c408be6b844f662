/**
 * Everything at once, at random: devices and routes torn down, daemons killed, suspended and restarted, hosts cut off,
 * etcd frozen and killed, leases of strangers coming and going. Afterwards every host is exactly as etcd says, and the
 * history of the store shows that no subnet ever had two owners and no node two subnets.
 *
 *   pod ── cni0 ── h1 ── ext0 ─┬─ switch + etcd ─┬─ ext0 ── h2 ── cni0 ── pod
 *                              ├───── ext0 ──────┤
 *                              h3                h4
 *
 * The order of events follows from a seed, which is printed; STORM_SEED=<number> repeats it, STORM_EVENTS=<number> makes it longer.
 */
import { expect, test } from "bun:test";
import { ownLease, putLeases } from "../e2e/leases.ts";
import { Cluster, PREFIX } from "../lab/cluster.ts";
import type { Daemon } from "../lab/daemon.ts";
import type { Host } from "../lab/host.ts";
import { expectInSync } from "../lab/oracle.ts";
import { ping } from "../lab/ping.ts";
import type { Pod } from "../lab/pod.ts";
import { until } from "../lab/until.ts";

const EVENTS = Number(process.env.STORM_EVENTS ?? 60);
const flags = ["--subnet-lease-ttl=5s"];

/** Findings that tell of a mistake in the daemon, not of trouble around it. */
const MISTAKES = [
  "INTERNAL",
  "STRAY_ERROR",
  "LOOP_RESTARTED",
  "LEASE_CONFLICT",
  "DATAPLANE_CLASH",
  "PEER_REJECTED",
];

test("calm returns", async () => {
  const seed = Number(process.env.STORM_SEED ?? Math.floor(Math.random() * 1e9));
  console.info(`  STORM_SEED=${seed}`);
  await using cluster = await Cluster.create({ hosts: 4 });
  const daemons = new Map<Host, Daemon>();
  for (const host of cluster.hosts) daemons.set(host, cluster.startDaemon(host, { flags }));
  await Promise.all([...daemons.values()].map((daemon) => daemon.ready));
  const keys = () => Promise.all(cluster.hosts.map(async (host) => (await ownLease(cluster, host))?.key));
  const before = await keys();

  await new Storm(cluster, daemons, seed).rage();

  await Promise.all([...daemons.values()].map((daemon) => daemon.ready));
  // A lease that the storm cost its time may still run out, and is taken back.
  await until(async () => Bun.deepEquals(await keys(), before), {
    message: async () => `every node has its subnet again: ${before}, not ${await keys()}`,
    deadline: 20_000,
  });
  await expectInSync(cluster.hosts, cluster.etcd, { deadline: 40_000 });
  const [p1, p2] = (await cluster.addPods()) as [Pod, Pod];
  expect((await ping(p1, p2.ipv4)).received).toBe(3);
  expect(await conflictsInHistory(cluster)).toEqual([]);
  for (const daemon of cluster.daemons) {
    const mistakes = daemon.lines.filter(({ code }) => MISTAKES.includes(String(code)));
    expect(mistakes).toEqual([]);
  }
  for (const daemon of daemons.values()) expect(await daemon.stop()).toMatchObject({ code: 0 });
}, 150_000);

/** Disturbs a cluster; what it cuts, freezes or stops it also joins, wakes and starts again. */
class Storm {
  readonly #cluster: Cluster;
  readonly #daemons: Map<Host, Daemon>;
  /** What lasts a while: only one such thing at a time happens to one host, or to etcd. */
  readonly #lasting = new Map<Host | "etcd", Promise<void>>();
  readonly #strangers = new Set<number>();
  #state: number;

  constructor(cluster: Cluster, daemons: Map<Host, Daemon>, seed: number) {
    this.#cluster = cluster;
    this.#daemons = daemons;
    this.#state = seed;
  }

  async rage(): Promise<void> {
    for (let n = 0; n < EVENTS; n++) {
      const host = this.#cluster.hosts[this.#below(this.#cluster.hosts.length)]!;
      const event = this.#events[this.#below(this.#events.length)]!;
      await event(host);
      await Bun.sleep(this.#below(300));
    }
    await Promise.all(this.#lasting.values());
  }

  readonly #events: readonly ((host: Host) => Promise<void> | void)[] = [
    (host) => this.#shell(host, "ip link del flannel.1"),
    (host) => this.#shell(host, "ip link set flannel.1 down"),
    (host) => this.#shell(host, "ip nexthop flush"),
    (host) => this.#shell(host, "ip neigh flush dev flannel.1 nud permanent"),
    (host) => this.#shell(host, "ip address flush dev flannel.1"),
    (host) => this.#shell(host, "ip route add 10.244.77.0/24 dev flannel.1"),
    (host) =>
      this.#shell(host, "bridge fdb append 02:00:00:00:00:99 dev flannel.1 dst 192.0.2.99 self permanent"),
    (host) => this.#restart(host, "SIGKILL"),
    (host) => this.#restart(host, "SIGTERM"),
    (host) =>
      this.#last(
        host,
        3_000,
        () => this.#of(host).pause(),
        () => this.#of(host).resume(),
      ),
    (host) =>
      this.#last(
        host,
        3_000,
        () => host.isolate(),
        () => host.rejoin(),
      ),
    (host) =>
      this.#last(
        host,
        3_000,
        () => host.separateFromEtcd(),
        () => host.reuniteWithEtcd(),
      ),
    (host) =>
      this.#last(
        host,
        1_000,
        () => host.switch.setCarrier(host.number, false),
        () => host.switch.setCarrier(host.number, true),
      ),
    () =>
      this.#last(
        "etcd",
        2_000,
        () => this.#cluster.etcd.pause(),
        () => this.#cluster.etcd.resume(),
      ),
    () =>
      this.#last(
        "etcd",
        0,
        () => this.#cluster.etcd.restart(),
        () => {},
      ),
    () => this.#stranger(),
    () => this.#stranger(),
  ];

  /** Fails when the device is gone already, which is fine. */
  async #shell(host: Host, script: string): Promise<void> {
    await host.namespace.run(["sh", "-c", script]);
  }

  async #restart(host: Host, signal: NodeJS.Signals): Promise<void> {
    await this.#lasting.get(host);
    await this.#of(host).stop(signal);
    this.#daemons.set(host, this.#cluster.startDaemon(host, { flags }));
  }

  #last(
    subject: Host | "etcd",
    most: number,
    begin: () => Promise<void> | void,
    end: () => Promise<void> | void,
  ): void {
    if (this.#lasting.has(subject)) return;
    const during = this.#below(most + 1);
    const over = (async () => {
      await begin();
      await Bun.sleep(during);
      await end();
      this.#lasting.delete(subject);
    })();
    this.#lasting.set(subject, over);
  }

  /** A lease in the part of the network that no daemon allocates from appears, changes or goes. */
  async #stranger(): Promise<void> {
    await this.#lasting.get("etcd");
    const n = 1 + this.#below(60);
    const key = `10.244.${n}.0-24`;
    if (this.#strangers.delete(n)) {
      await this.#cluster.etcd.ctl("del", `${PREFIX}/subnets/${key}`);
      return;
    }
    this.#strangers.add(n);
    const byte = () => this.#below(256).toString(16).padStart(2, "0");
    const value = {
      PublicIP: `192.0.2.${100 + n}`,
      PublicIPv6: null,
      BackendType: "vxlan",
      BackendData: { VNI: 1, VtepMAC: `02:00:${byte()}:${byte()}:${byte()}:${byte()}` },
    };
    await putLeases(this.#cluster, [{ key, value }]);
  }

  #of(host: Host): Daemon {
    return this.#daemons.get(host)!;
  }

  /** A whole number below `limit` (mulberry32). */
  #below(limit: number): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let t = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * limit);
  }
}

/** Every write to a subnet key since the beginning: subnets that had two nodes, and nodes that had two subnets. */
async function conflictsInHistory({ etcd, switch: on }: Cluster): Promise<readonly string[]> {
  const watch = [
    "etcdctl",
    "--endpoints",
    etcd.endpoint,
    "watch",
    "--prefix",
    `${PREFIX}/subnets/`,
    "--rev=1",
  ];
  const { stdout } = await on.namespace.run(["timeout", "2", ...watch, "-w", "json"]);
  const [owners, subnets] = [new Map<string, Set<string>>(), new Map<string, Set<string>>()];
  let writes = 0;
  for (const line of stdout.trim().split("\n")) {
    const { Events = [] } = JSON.parse(line) as { Events?: { kv: { key: string; value?: string } }[] };
    for (const { kv } of Events) {
      if (kv.value === undefined) continue;
      const key = Buffer.from(kv.key, "base64").toString();
      const { NodeID } = JSON.parse(Buffer.from(kv.value, "base64").toString()) as { NodeID?: string };
      if (NodeID === undefined) continue;
      writes += 1;
      owners.set(key, (owners.get(key) ?? new Set()).add(NodeID));
      subnets.set(NodeID, (subnets.get(NodeID) ?? new Set()).add(key));
    }
  }
  expect(writes).toBeGreaterThan(3);
  return [...owners, ...subnets]
    .filter(([, others]) => others.size > 1)
    .map(([one, others]) => `${one}: ${[...others]}`);
}
