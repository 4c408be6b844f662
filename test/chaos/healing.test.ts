/**
 * The kernel is disturbed by other hands while pods talk: everything is put right within 3 s, and the pings that it
 * cost are counted.
 *
 *   pod ── cni0 ── h1 ── ext0 ─┬─ switch + etcd ─┬─ ext0 ── h2 ── cni0 ── pod
 *                              └───── ext0 ──────┘
 *                                      h3
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { statSync } from "node:fs";
import { ownLease } from "../e2e/leases.ts";
import { Cluster, networkConfig } from "../lab/cluster.ts";
import type { Daemon } from "../lab/daemon.ts";
import type { Host } from "../lab/host.ts";
import { KernelMonitor } from "../lab/kernel-monitor.ts";
import { expectInSync } from "../lab/oracle.ts";
import { type FlowReport, PingFlow } from "../lab/ping-flow.ts";
import type { Pod } from "../lab/pod.ts";
import type { Family } from "../lab/segment.ts";

const TIMEOUT = 60_000;
/** The bound, ms. */
const HEALED_MS = 3_000;

/** `ip route flush` of iproute2 6.1 fails at routes with nexthop objects, so they are deleted one by one. */
const FLUSH_ROUTES = `for family in -4 -6; do
  ip $family route show proto 140 | while read -r subnet rest; do ip $family route del $subnet proto 140; done
done`;

interface Scene {
  readonly cluster: Cluster;
  readonly hosts: readonly Host[];
  readonly pods: readonly Pod[];
  daemons: Daemon[];
}

async function layOut(family: Family, type: string, hosts: number): Promise<Scene> {
  const config = networkConfig(family, { Type: type });
  const cluster = await Cluster.create({ hosts, family, config });
  try {
    const daemons = await cluster.startDaemons();
    const pods = await cluster.addPods();
    await expectInSync(cluster.hosts, cluster.etcd);
    return { cluster, hosts: cluster.hosts, pods, daemons: [...daemons] };
  } catch (error) {
    await cluster[Symbol.asyncDispose]();
    throw error;
  }
}

/** One flow per family from the first pod to the second, over `disturb` and until all is right again. */
async function disturbed(
  scene: Scene,
  name: string,
  disturb: () => Promise<unknown>,
): Promise<readonly FlowReport[]> {
  const [from, to] = scene.pods as [Pod, Pod];
  await using flows = new AsyncDisposableStack();
  const running: PingFlow[] = [];
  for (const address of to.addresses)
    running.push(flows.use(await PingFlow.start(from, address, { rate: 50 })));
  await disturb();
  await Promise.all(running.map((flow) => flow.expectAnswers(1)));
  await expectInSync(scene.hosts, scene.cluster.etcd);
  await Promise.all(running.map((flow) => flow.expectAnswers(5)));
  const reports = await Promise.all(running.map((flow) => flow.stop()));
  for (const { longestGap, lost, sent } of reports) {
    console.info(`  ${name}: ${lost} of ${sent} pings lost, longest gap ${longestGap} ms`);
    expect(longestGap).toBeLessThan(HEALED_MS);
  }
  return reports;
}

describe("vxlan, dual stack", () => {
  let scene: Scene;
  let [h1, h2]: Host[] = [];
  beforeAll(async () => {
    scene = await layOut("dual", "vxlan", 3);
    [h1, h2] = scene.hosts;
  }, TIMEOUT);
  afterAll(() => scene.cluster[Symbol.asyncDispose]());

  test.each<[name: string, script: string]>([
    ["our routes flushed", FLUSH_ROUTES],
    ["nexthops flushed", "ip nexthop flush"],
    [
      "neighbours flushed",
      "ip neigh flush dev flannel.1 nud permanent; ip -6 neigh flush dev flannel-v6.1 nud permanent",
    ],
    [
      "forwarding entries flushed",
      `for dev in flannel.1 flannel-v6.1; do
         bridge fdb show dev $dev | while read -r mac dst address rest; do bridge fdb del $mac dev $dev dst $address self; done
       done`,
    ],
    [
      "addresses flushed",
      "ip address flush dev flannel.1; ip -6 address flush dev flannel-v6.1 scope global",
    ],
    ["devices down", "ip link set flannel.1 down; ip link set flannel-v6.1 down"],
    [
      "devices down and up",
      "for dev in flannel.1 flannel-v6.1; do ip link set $dev down; ip link set $dev up; done",
    ],
    ["devices deleted", "ip link del flannel.1; ip link del flannel-v6.1"],
    ["one family's device deleted", "ip link del flannel-v6.1"],
    ["MTU lowered by hand", "ip link set flannel.1 mtu 1200"],
    [
      "a peer's entries turned against it",
      `peer=$(ip -4 neigh show dev flannel.1 nud permanent | head -1 | cut -d' ' -f1)
       ip neigh replace $peer lladdr 02:00:00:00:00:99 nud permanent dev flannel.1
       ip route replace blackhole $peer/24`,
    ],
  ])(
    "%s",
    async (name, script) => {
      const lease = await ownLease(scene.cluster, h1!);
      const file = statSync(h1!.subnetFile);
      await disturbed(scene, name, () => h1!.namespace.exec("sh", "-ec", script));
      // Neither the lease nor the subnet file has anything to do with it.
      expect(await ownLease(scene.cluster, h1!)).toEqual(lease);
      expect(statSync(h1!.subnetFile)).toMatchObject({ ino: file.ino, mtimeMs: file.mtimeMs });
    },
    TIMEOUT,
  );

  test(
    "both ends at once: devices deleted on one, routes flushed on the other",
    async () => {
      await disturbed(scene, "both ends", () =>
        Promise.all([
          h1!.namespace.exec("sh", "-ec", "ip link del flannel.1; ip link del flannel-v6.1"),
          h2!.namespace.exec("sh", "-ec", FLUSH_ROUTES),
        ]),
      );
    },
    TIMEOUT,
  );

  test(
    "another MAC address of the device is published, and the peers take it over",
    async () => {
      const before = await ownLease(scene.cluster, h1!);
      await disturbed(scene, "MAC changed", () =>
        h1!.namespace.ip("link set flannel.1 address 02:00:00:00:00:77"),
      );
      const after = await ownLease(scene.cluster, h1!);
      expect(after?.key).toBe(before!.key);
      expect(after?.value?.BackendData).toMatchObject({ VtepMAC: "02:00:00:00:00:77" });
    },
    TIMEOUT,
  );

  test(
    "the underlay's MTU changes: device and subnet file follow",
    async () => {
      await disturbed(scene, "underlay MTU", () => h1!.namespace.ip("link set ext0 mtu 1400"));
      expect(await Bun.file(h1!.subnetFile).text()).toContain("FLANNEL_MTU=1330\n");
      await disturbed(scene, "underlay MTU back", () => h1!.namespace.ip("link set ext0 mtu 1500"));
      expect(await Bun.file(h1!.subnetFile).text()).toContain("FLANNEL_MTU=1430\n");
    },
    TIMEOUT,
  );

  test.each(["SIGTERM", "SIGKILL"] as const)(
    "six restarts after %s lose nothing and change nothing",
    async (signal) => {
      await using monitor = await KernelMonitor.start(h1!);
      const reports = await disturbed(scene, `six restarts after ${signal}`, async () => {
        for (let n = 0; n < 6; n++) {
          await scene.daemons[0]!.stop(signal);
          scene.daemons[0] = scene.cluster.startDaemon(h1!);
          await scene.daemons[0].ready;
        }
      });
      for (const { lost } of reports) expect(lost).toBe(0);
      expect(await monitor.stop()).toEqual([]);
    },
    TIMEOUT,
  );

  test(
    "what changed while the daemon was down is caught up with at its start",
    async () => {
      await scene.daemons[0]!.kill();
      await h1!.namespace.exec(
        "sh",
        "-ec",
        `ip link del flannel-v6.1; ${FLUSH_ROUTES}; ip route add 10.244.250.0/24 dev flannel.1 proto 140`,
      );
      scene.daemons[0] = scene.cluster.startDaemon(h1!);
      await scene.daemons[0].ready;
      await expectInSync(scene.hosts, scene.cluster.etcd);
    },
    TIMEOUT,
  );

  // Last: it uses up what a daemon may repair at full speed, see the finding DATAPLANE_FIGHT.
  test(
    "twenty deletions in two seconds",
    async () => {
      const burst = "for n in $(seq 20); do ip link del flannel.1 2>/dev/null || true; sleep 0.1; done";
      const from = performance.now();
      await h1!.namespace.exec("sh", "-c", burst);
      await expectInSync(scene.hosts, scene.cluster.etcd, { deadline: 15_000 });
      console.info(
        `  in sync ${Math.round(performance.now() - from)} ms after the first of twenty deletions`,
      );
    },
    TIMEOUT,
  );
});

describe("host-gw, dual stack", () => {
  let scene: Scene;
  let [h1]: Host[] = [];
  beforeAll(async () => {
    scene = await layOut("dual", "host-gw", 2);
    [h1] = scene.hosts;
  }, TIMEOUT);
  afterAll(() => scene.cluster[Symbol.asyncDispose]());

  test.each<[name: string, script: string]>([
    ["our routes flushed", FLUSH_ROUTES],
    [
      "the underlay down and up",
      // An administrator's ifdown and ifup: the kernel forgets all routes, and IPv6 addresses too.
      `ip link set ext0 down; ip link set ext0 up
       ip route add default via 192.0.2.254 dev ext0
       ip -6 address add fd00:db8::1/64 dev ext0 nodad; ip -6 route add default via fd00:db8::254 dev ext0`,
    ],
  ])(
    "%s",
    async (name, script) => {
      await disturbed(scene, name, () => h1!.namespace.exec("sh", "-ec", script));
    },
    TIMEOUT,
  );

  test(
    "a pulled cable costs what it lasts",
    async () => {
      await disturbed(scene, "carrier lost and back", async () => {
        await scene.cluster.switch.setCarrier(1, false);
        await Bun.sleep(300);
        await scene.cluster.switch.setCarrier(1, true);
      });
    },
    TIMEOUT,
  );
});
