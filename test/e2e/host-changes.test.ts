/**
 * The host changes under a running node, by an operator, DHCP or udev, while pods talk: data path, lease and subnet
 * file follow, pods keep their addresses, and the pings that it costs are counted.
 *
 *   pod ── cni0 ── h1 ── ext0 ─┬─ switch + etcd ─┬─ ext0 ── h2 ── cni0 ── pod
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { Cluster, PREFIX } from "../lab/cluster.ts";
import type { Daemon } from "../lab/daemon.ts";
import type { Host } from "../lab/host.ts";
import { expectInSync } from "../lab/oracle.ts";
import { PingFlow } from "../lab/ping-flow.ts";
import type { Pod } from "../lab/pod.ts";
import { readSubnetFile } from "../lab/subnet-file.ts";
import { until } from "../lab/until.ts";
import { readStatus } from "./ask.ts";
import { type StoredKey, storedLeases } from "./leases.ts";

const TIMEOUT = 60_000;
/** The bound for what is repaired on this host, ms; a machine that is busy with other tests gets as much again. */
const HEALED_MS = 6_000;
/** A new address has to be settled (it might be a flap), and the peer to hear of it, ms. */
const MOVED_MS = 15_000;
const ADDRESS = "ip route replace default via 192.0.2.254 dev ext0";
/** Of a NIC and of our device, as udev with MACAddressPolicy=persistent would set them. */
const [NIC_MAC, DEVICE_MAC] = ["02:00:00:00:77:01", "02:00:00:00:77:02"];

let cluster: Cluster;
let h1: Host;
let daemon: Daemon;

beforeAll(async () => {
  cluster = await Cluster.create({ hosts: 2 });
  h1 = cluster.hosts[0]!;
  daemon = (await cluster.startDaemons())[0]!;
  await cluster.addPods();
}, TIMEOUT);
afterAll(() => cluster[Symbol.asyncDispose]());

const own = async (key: string) => (await storedLeases(cluster)).find((each) => each.key === key)!;
const findings = async () => (await readStatus(h1)).findings.map(({ code }) => code).join();
const macOf = ({ value }: StoredKey) => (value?.BackendData as { VtepMAC?: string } | undefined)?.VtepMAC;

interface Change {
  readonly name: string;
  readonly change: string | (() => Promise<unknown>);
  /** Longest time without an answer, ms; 0: not one is lost. */
  readonly gap: number;
  /** Whether the lease may be written. */
  readonly writes: boolean;
  /** What has come about when the daemon has followed. */
  readonly followed: (lease: StoredKey) => unknown;
}

// In a row: each starts from what the one before left.
test.each<Change>([
  {
    name: "an address of somebody else's on our device stays",
    change: async () => {
      await h1.namespace.ip("address add 198.51.100.7/32 dev flannel.1");
      // Something to repair, so that everything on the device is looked at.
      await h1.namespace.ip("link set flannel.1 mtu 1440");
      await until(async () => /mtu 1450 /.test(await h1.namespace.ip("link show flannel.1")), {
        message: () => daemon.tail(),
      });
      // Fails where it is gone.
      await h1.namespace.ip("address delete 198.51.100.7/32 dev flannel.1");
    },
    gap: 0,
    writes: false,
    followed: () => true,
  },
  {
    name: "an address in our network on our device goes",
    change: "ip address add 10.244.0.77/32 dev flannel.1",
    gap: 0,
    writes: false,
    followed: async () =>
      !(await h1.namespace.exec("ip", "address", "show", "dev", "flannel.1")).includes("10.244.0.77/32"),
  },
  {
    name: "udev renames the MAC of our device",
    change: `ip link set flannel.1 address ${DEVICE_MAC}`,
    gap: HEALED_MS,
    writes: true,
    followed: (lease) => macOf(lease) === DEVICE_MAC,
  },
  {
    name: "udev renames the MAC of the NIC",
    change: `ip link set ext0 down; ip link set ext0 address ${NIC_MAC}; ip link set ext0 up; ${ADDRESS}`,
    gap: HEALED_MS,
    writes: false,
    followed: () => true,
  },
  {
    name: "the cable is pulled for a second",
    change: async () => {
      await cluster.switch.setCarrier(h1.number, false);
      await Bun.sleep(1_000);
      await cluster.switch.setCarrier(h1.number, true);
    },
    gap: HEALED_MS,
    writes: false,
    followed: () => true,
  },
  {
    name: "the NIC flaps",
    change: `for n in 1 2 3; do ip link set ext0 down; ip link set ext0 up; done; ${ADDRESS}`,
    gap: HEALED_MS,
    writes: false,
    followed: () => true,
  },
  {
    name: "the MTU of the NIC is lowered",
    change: "ip link set ext0 mtu 1400",
    gap: HEALED_MS,
    writes: false,
    followed: async () => (await readSubnetFile(h1.subnetFile)).mtu === 1350,
  },
  {
    name: "the address changes",
    change: async () => {
      // Somebody's lease with this node's address is not routed to, until that is another one.
      const other = {
        PublicIP: "192.0.2.1",
        BackendType: "vxlan",
        BackendData: { VNI: 1, VtepMAC: NIC_MAC },
      };
      await cluster.etcd.ctl("put", `${PREFIX}/subnets/10.244.201.0-24`, JSON.stringify(other));
      await until(async () => (await findings()).includes("PEER_REJECTED"), { message: findings });
      const moved = `ip address delete 192.0.2.1/24 dev ext0; ip address add 192.0.2.71/24 dev ext0; ${ADDRESS}`;
      await h1.namespace.exec("sh", "-ec", moved);
    },
    gap: MOVED_MS,
    writes: true,
    followed: async ({ value }) => value?.PublicIP === "192.0.2.71" && (await findings()) === "",
  },
  {
    name: "the NIC is deleted and made anew",
    change: async () => {
      await h1.namespace.ip("link delete ext0");
      await cluster.switch.connect(h1.namespace, "ext0", h1.number);
      const up = `ip link set ext0 up; ip address add 192.0.2.71/24 dev ext0; ${ADDRESS}`;
      await h1.namespace.exec("sh", "-ec", up);
    },
    gap: MOVED_MS,
    writes: false,
    followed: async () => (await readSubnetFile(h1.subnetFile)).mtu === 1450,
  },
])(
  "$name",
  async ({ name, change, gap, writes, followed }) => {
    const [p1, p2] = cluster.pods as [Pod, Pod];
    const before = await readSubnetFile(h1.subnetFile);
    const key = before.subnet!.replace(/\.1\/(\d+)$/, ".0-$1");
    const { modRevision } = await own(key);
    await using flow = await PingFlow.start(p1, p2.ipv4, { rate: 100 });
    await (typeof change === "string" ? h1.namespace.exec("sh", "-ec", change) : change());
    await until(async () => followed(await own(key)), { message: () => daemon.tail(), deadline: MOVED_MS });
    await flow.expectAnswers(1, MOVED_MS);
    await expectInSync(cluster.hosts, cluster.etcd, { deadline: MOVED_MS });
    await flow.expectAnswers(20);
    const { sent, lost, longestGap, duplicates } = await flow.stop();
    console.info(`  ${name}: ${lost} of ${sent} pings lost, longest gap ${longestGap} ms`);
    expect(duplicates).toBe(0);
    if (gap === 0) expect(lost).toBe(0);
    else expect(longestGap).toBeLessThan(gap);
    // Subnet and key are as ever; the lease is written only where peers have to hear of something.
    expect((await readSubnetFile(h1.subnetFile)).subnet).toBe(before.subnet!);
    if (!writes) expect((await own(key)).modRevision).toBe(modRevision);
    expect(daemon.running).toBe(true);
  },
  TIMEOUT,
);
