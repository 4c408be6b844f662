/**
 * What holds with every backend that moves packets between nodes; backends.ts has what differs.
 *
 *   pod ── cni0 ── h1 ── ext0 ─┬─ switch + etcd ─┬─ ext0 ── h2 ── cni0 ── pod
 *                              └─ ext0 ── h3 ── cni0 ── pod: comes later, and goes
 */
import { expect } from "bun:test";
import type { Host } from "../../lab/host.ts";
import { ping } from "../../lab/ping.ts";
import { PingFlow } from "../../lab/ping-flow.ts";
import { POD_BRIDGE, type Pod } from "../../lab/pod.ts";
import { readSubnetFile } from "../../lab/subnet-file.ts";
import { tcpTransfer } from "../../lab/transfer.ts";
import { until } from "../../lab/until.ts";
import { IN_VM } from "../../lab/vm/vm.ts";
import { ownLease } from "../leases.ts";
import type { BackendCase } from "./backends.ts";
import type { Overlay } from "./overlay.ts";

/** MTU of the hosts' interfaces. */
const UNDERLAY_MTU = 1_500;
/** IP and ICMP of an echo request. */
const ECHO_HEADERS = { ipv4: 28, ipv6: 48 } as const;
/** Echo requests a second in the flows. */
const RATE = IN_VM ? 20 : 100;
/** Of each TCP stream. */
const BYTES = (IN_VM ? 1 : 4) * 1024 * 1024;
const TRANSFER_MS = IN_VM ? 60_000 : 15_000;

/** How a daemon ends. A start takes long in a guest, and the tests of single backends end daemons orderly there. */
const SIGNALS: readonly NodeJS.Signals[] = IN_VM ? ["SIGKILL"] : ["SIGTERM", "SIGKILL"];

/** Every pod reaches every other one at all its addresses. */
async function reachesAll(overlay: Overlay): Promise<void> {
  await Promise.all(orderedPairs(overlay.pods).map(([from, to]) => untilReached(overlay, from, to)));
}

/** TCP flows between all pods, in both directions and in all families. */
async function transfersBothWays({ pods }: Overlay): Promise<void> {
  for (const [from, to] of orderedPairs(pods)) {
    for (const address of to.addresses) {
      const { bytes } = await tcpTransfer(from, to, address, { bytes: BYTES, deadline: TRANSFER_MS });
      // Not all of them: what is still on its way when the sender has done is not counted.
      expect(bytes).toBeGreaterThan(0);
    }
  }
}

/** The subnet file promises what fits the underlay; pods have it, and packets of that size arrive, larger ones do not. */
async function promisesTheMtu({ backend, hosts, pods }: Overlay): Promise<void> {
  const mtu = Math.min(...Object.values(carriedBy(backend)));
  for (const host of hosts) expect((await readSubnetFile(host.subnetFile)).mtu).toBe(mtu);
  for (const { namespace } of pods) {
    expect(await namespace.exec("cat", "/sys/class/net/eth0/mtu")).toBe(`${mtu}\n`);
  }
  const probes = orderedPairs(pods).flatMap(([from, to]) =>
    to.addresses.map(async (address) => {
      const [fits, exceeds] = await Promise.all([mtu, mtu + 1].map((bytes) => probe(from, address, bytes)));
      expect({ address, fits: fits?.received, exceeds: exceeds?.received }).toMatchObject({
        fits: 1,
        exceeds: 0,
      });
    }),
  );
  await Promise.all(probes);
}

/** A packet one byte too large for the tunnel, out of a pod that does not know, is answered with the size that fits. */
async function tellsTheMtu({ backend, pods }: Overlay): Promise<void> {
  // Which size fits then depends on the packet.
  if (backend.padded === true) return;
  const carried = carriedBy(backend);
  const [p1, p2] = pods as [Pod, Pod];
  const { mtu } = await readSubnetFile(p1.host.subnetFile);
  try {
    for (const pod of [p1, p2]) await setMtu(pod, Math.max(...Object.values(carried)) + 1);
    for (const address of p2.addresses) {
      const most = carried[familyOf(address)];
      expect((await probe(p1, address, most)).received).toBe(1);
      const larger = await probe(p1, address, most + 1);
      expect(larger.received).toBe(0);
      expect(larger.output).toMatch(new RegExp(`mtu ?[=:] ?${most}\\b`, "i"));
    }
  } finally {
    for (const pod of [p1, p2]) await setMtu(pod, mtu);
  }
}

/** The third host joins, and reaches all and is reached by all; what the others send each other is not disturbed. */
async function joins(overlay: Overlay): Promise<void> {
  await reachesAll(overlay);
  await undisturbed(overlay, async () => {
    await overlay.join();
    await reachesAll(overlay);
  });
}

/** When it has gone, and its lease, the others have nothing of it any more. */
async function leaves(overlay: Overlay): Promise<void> {
  const { backend, cluster, hosts, pods } = overlay;
  const [, , p3] = pods as [Pod, Pod, Pod];
  await undisturbed(overlay, async () => {
    for (const host of hosts.slice(0, 2)) expect(await backend.knows(host, p3)).toBe(true);
    await overlay.stop(p3.host);
    expect(await ownLease(cluster, p3.host)).toBeUndefined();
    for (const host of hosts.slice(0, 2)) {
      await until(async () => !(await backend.knows(host, p3)), {
        message: () => `${host.name} still has something of h3\n${overlay.tail()}`,
      });
    }
  });
}

/** Nothing that the first two pods send each other is lost meanwhile. */
async function undisturbed({ backend, pods }: Overlay, during: () => Promise<void>): Promise<void> {
  const [p1, p2] = pods as [Pod, Pod];
  await using flow = await PingFlow.start(p1, p2.ipv4, { rate: RATE });
  await during();
  await flow.expectAnswers(10);
  expect((await flow.stop()).lost).toBeLessThanOrEqual(backend.underWay ?? 0);
}

/** The daemon of a host ends and starts again: traffic pauses no longer than is said of the backend. */
async function survivesRestarts(overlay: Overlay): Promise<void> {
  const [h1] = overlay.hosts as [Host];
  const [p1, p2] = overlay.pods as [Pod, Pod];
  await using flow = await PingFlow.start(p1, p2.ipv4, { rate: RATE });
  for (const signal of SIGNALS) {
    await overlay.stop(h1, signal);
    await overlay.start(h1);
    await flow.expectAnswers(10, 30_000);
  }
  const { lost, longestGap } = await flow.stop();
  const { name, pause } = overlay.backend;
  if (pause === undefined) expect(lost).toBe(0);
  else {
    console.info(`  ${name}: a restart stops traffic for ${longestGap} ms at most`);
    expect(longestGap).toBeLessThan(pause);
  }
  await reachesAll(overlay);
}

/** All of it in order, by the names of tests. */
export const SCENARIO: readonly (readonly [name: string, run: (overlay: Overlay) => Promise<void>])[] = [
  ["a host joins, all pods reach each other, and the others notice nothing", joins],
  ["TCP flows between all pods, both ways", transfersBothWays],
  ["the MTU of the subnet file fits, a byte more does not", promisesTheMtu],
  ["what is too large for the tunnel is told its MTU", tellsTheMtu],
  ["restarts and crashes of a daemon lose nothing, or what they must", survivesRestarts],
  ["a host leaves, nothing of it is left, and the others notice nothing", leaves],
];

/** The largest packet of a pod that fits the underlay, by its family. */
function carriedBy({ overhead: { ipv4, ipv6 = ipv4 } }: BackendCase) {
  return { ipv4: UNDERLAY_MTU - ipv4, ipv6: UNDERLAY_MTU - ipv6 } as const;
}

function familyOf(address: string) {
  return address.includes(":") ? "ipv6" : "ipv4";
}

function orderedPairs(pods: readonly Pod[]): readonly (readonly [Pod, Pod])[] {
  return pods.flatMap((from) => pods.filter((to) => to !== from).map((to) => [from, to] as const));
}

/** Waits until nothing is missing of what is sent; tunnels may have to be made first. */
async function untilReached(overlay: Pick<Overlay, "tail">, from: Pod, to: Pod): Promise<void> {
  for (const address of to.addresses) {
    await until(async () => (await ping(from, address, { count: 2 })).received === 2, {
      message: () => `${from.host.name} does not reach ${address} on ${to.host.name}\n${overlay.tail()}`,
      deadline: 20_000,
    });
  }
}

/** Sends one echo request of so many bytes, headers included, that nobody may cut. */
function probe(from: Pod, address: string, bytes: number) {
  const size = bytes - ECHO_HEADERS[familyOf(address)];
  return ping(from, address, { count: 1, size, dontFragment: true });
}

/** Gives a pod and its way up to the host another MTU. */
async function setMtu({ host, namespace, number }: Pod, mtu: number): Promise<void> {
  await host.namespace.ipBatch(...[`pod${number}`, POD_BRIDGE].map((dev) => `link set ${dev} mtu ${mtu}`));
  await namespace.ip(`link set eth0 mtu ${mtu}`);
}
