/**
 * What holds wherever WireGuard runs. `wireguard.test.ts` has it with a process in user space, natively;
 * `wireguard-kernel.test.ts` with the kernel's, in a virtual machine.
 *
 *   pod ── cni0 ── h1 ── flannel-wg ═ ext0 ─┬─ switch + etcd ─┬─ ext0 ═ flannel-wg ── h2 ── cni0 ── pod
 *                                           └─ tcpdump        └─ tcpdump
 */
import { expect } from "bun:test";
import { rmSync } from "node:fs";
import { networkConfig, PREFIX } from "../lab/cluster.ts";
import { executable } from "../lab/daemon.ts";
import type { Host } from "../lab/host.ts";
import { ping } from "../lab/ping.ts";
import { PingFlow } from "../lab/ping-flow.ts";
import type { Pod } from "../lab/pod.ts";
import { readSubnetFile } from "../lab/subnet-file.ts";
import { endpointFor } from "../lab/switch-etcd.ts";
import { until } from "../lab/until.ts";
import { ownLease } from "./leases.ts";
import { expectAllReach, expectMesh, keyFile, type Mesh, runBeside, showDevice } from "./wireguard-lab.ts";

/** Of an echo request: IP and ICMP. */
const ECHO_HEADERS = { ipv4: 28, ipv6: 48 } as const;
/** A repair is begun 200 ms after the change; the rest is the start of a process where one is needed. */
const LONGEST_GAP_MS = 3_000;

/** Pods reach each other, over exactly the MTU promised, with the secret of the config, and nothing of it is in clear. */
export async function carriesEncrypted(mesh: Mesh): Promise<void> {
  for (const host of mesh.hosts) expect((await readSubnetFile(host.subnetFile)).mtu).toBe(1420);
  await expectAllReach(mesh.pods);
  const [first, second] = mesh.pods as [Pod, Pod];
  for (const address of second.addresses) {
    const size = 1420 - ECHO_HEADERS[address.includes(":") ? "ipv6" : "ipv4"];
    const fits = await ping(first, address, { count: 1, size, dontFragment: true });
    const exceeds = await ping(first, address, { count: 1, size: size + 1, dontFragment: true });
    expect({ fits: fits.received, exceeds: exceeds.received }).toEqual({ fits: 1, exceeds: 0 });
  }
  const { PSK = "(none)" } = mesh.options;
  for (const { presharedKey } of (await showDevice(mesh.host(1))).peers)
    expect(presharedKey).toBe(String(PSK));
  await mesh.expectEncrypted();
}

/** What may happen to a device and to what lies on it. */
const DAMAGES = [
  "ip link delete flannel-wg",
  "ip route flush dev flannel-wg proto 140",
  "ip link set flannel-wg down",
  "ip address flush dev flannel-wg scope global",
  "ip link set flannel-wg mtu 1300",
  "ip route delete blackhole 10.244.0.0/16 metric 4278198272",
];

/** Whatever vanishes or is changed, the first `count` kinds of it, comes back; in between nothing leaves in clear. */
export async function healsEncrypted(mesh: Mesh, count = DAMAGES.length): Promise<void> {
  const host = mesh.host(1);
  await expectAllReach(mesh.pods);
  const [p1, p2] = mesh.pods as [Pod, Pod];
  await using flow = await PingFlow.start(p1, p2.ipv4, { rate: 20 });
  for (const damage of DAMAGES.slice(0, count)) {
    await host.namespace.exec("sh", "-c", damage);
    await until(() => isWhole(host), { message: `${damage} is repaired`, deadline: LONGEST_GAP_MS });
    await flow.expectAnswers(5, 15_000);
  }
  await flow.stop();
  await mesh.expectEncrypted();
}

/** Peers that somebody removes or changes by hand (`wg set`) are right again soon; the others go on. */
export async function healsPeers(mesh: Mesh): Promise<void> {
  const host = mesh.host(1);
  await expectAllReach(mesh.pods);
  const before = await showDevice(host);
  const [peer] = before.peers;
  for (const change of [`${peer?.publicKey} remove`, `${peer?.publicKey} allowed-ips 10.9.0.0/24`]) {
    await runBeside(host, "wg", "set", "flannel-wg", "peer", ...change.split(" "));
    await until(async () => Bun.deepEquals(await showDevice(host), before), {
      message: `${change} is repaired`,
      deadline: 10_000,
    });
  }
  await expectAllReach(mesh.pods);
  await mesh.expectEncrypted();
}

async function isWhole(host: Host): Promise<boolean> {
  const script = "ip -o -4 address show dev flannel-wg up; ip link show flannel-wg; ip route show proto 140";
  const { stdout } = await host.namespace.run(["sh", "-c", script]);
  return [
    /inet 10\.244\./,
    /mtu 1420/,
    /^10\.244\.0\.0\/16 dev flannel-wg/m,
    /^blackhole 10\.244\.0\.0\/16/m,
  ].every((part) => part.test(stdout));
}

/** A daemon that ends by each of the signals and starts again changes nothing: no packet is lost. `rate` in packets a second. */
export async function survivesRestarts(
  mesh: Mesh,
  rate: number,
  signals: readonly NodeJS.Signals[] = ["SIGTERM", "SIGKILL"],
): Promise<void> {
  const host = mesh.host(1);
  const [p1, p2] = mesh.pods as [Pod, Pod];
  await expectAllReach([p1, p2]);
  const before = await showDevice(host);
  const index = await readIndex(host);
  await using flow = await PingFlow.start(p1, p2.ipv4, { rate });
  for (const signal of signals) {
    await mesh.stop(1, signal);
    await mesh.start(1);
    await flow.expectAnswers(5);
  }
  expect((await flow.stop()).lost).toBe(0);
  expect(await showDevice(host)).toEqual(before);
  expect(await readIndex(host)).toBe(index);
  await mesh.expectEncrypted();
}

/** A new key replaces the old one everywhere, and the lease tells it as upstream does. */
export async function followsNewKey(mesh: Mesh): Promise<void> {
  const host = mesh.host(1);
  const former = (await showDevice(host)).publicKey;
  const index = await readIndex(host);
  await mesh.stop(1);
  rmSync(keyFile(host));
  await mesh.start(1);
  await expectMesh(mesh.cluster);
  const { publicKey } = await showDevice(host);
  expect(publicKey).not.toBe(former);
  expect((await ownLease(mesh.cluster, host))?.value).toMatchObject({
    BackendType: "wireguard",
    BackendData: { PublicKey: publicKey, Port: 51820 },
  });
  expect(await readIndex(host)).toBe(index);
  await expectAllReach(mesh.pods);
}

/** Another port and secret are taken in place. Of a mesh in IPv4 alone. */
export async function changesInPlace(mesh: Mesh): Promise<void> {
  const [h1, h2] = [mesh.host(1), mesh.host(2)];
  const index = await readIndex(h1);
  const { publicKey } = await showDevice(h1);
  const secret = Buffer.alloc(32, 5).toString("base64");
  const config = networkConfig("v4", { Type: "wireguard", ListenPort: 51821, PSK: secret });
  await mesh.cluster.configure(config);
  for (const n of [1, 2]) {
    await mesh.stop(n);
    await mesh.start(n);
  }
  const there = `${h2.ipv4}:51821`;
  await until(async () => (await showDevice(h1)).peers.some(({ endpoint }) => endpoint === there), {
    message: "the new port is used",
  });
  const { port, peers, ...device } = await showDevice(h1);
  expect({ port, ...device }).toEqual({ port: 51821, publicKey });
  for (const { presharedKey } of peers) expect(presharedKey).toBe(secret);
  expect(await readIndex(h1)).toBe(index);
  await expectAllReach(mesh.pods.slice(0, 2));
  await mesh.expectEncrypted();
}

/** Device and subnet file follow the MTU of the interface. */
export async function followsMtu(mesh: Mesh, n: number): Promise<void> {
  const host = mesh.host(n);
  for (const [underlay, pods] of [
    [1400, 1320],
    [1500, 1420],
  ] as const) {
    await host.namespace.ip(`link set ext0 mtu ${underlay}`);
    await until(async () => (await readSubnetFile(host.subnetFile)).mtu === pods, {
      message: `the subnet file says ${pods}`,
    });
    expect(await host.namespace.exec("cat", "/sys/class/net/flannel-wg/mtu")).toBe(`${pods}\n`);
  }
}

/** A host whose lease goes is forgotten. */
export async function forgets(mesh: Mesh, n: number): Promise<void> {
  await mesh.stop(n);
  await mesh.cluster.etcd.ctl(
    "del",
    `${PREFIX}/subnets/${(await ownLease(mesh.cluster, mesh.host(n)))?.key}`,
  );
  const left = mesh.hosts.length - 2;
  await until(async () => (await showDevice(mesh.host(1))).peers.length === left, {
    message: "it is forgotten",
  });
}

/** `flanneld cleanup` announces and removes device, guard and routes, and finds nothing the second time. */
export async function cleansUp(mesh: Mesh, n: number): Promise<void> {
  const host = mesh.host(n);
  await mesh.stop(n);
  const flags = [
    `--etcd-endpoints=${endpointFor(host, mesh.cluster.switch)}`,
    `--subnet-file=${host.subnetFile}`,
  ];
  const clean = (...more: readonly string[]) => runBeside(host, executable(), "cleanup", ...more, ...flags);
  const plan = await clean("--dry-run");
  const found = plan.stdout
    .split("\n")
    .filter((line) => /device flannel-wg|blackhole 10.244.0.0.16/.test(line));
  expect({ found, count: found.length }).toMatchObject({ count: 2 });
  expect(await clean()).toMatchObject({ exitCode: 0 });
  expect(await host.namespace.exec("ip", "route", "show", "proto", "140")).toBe("");
  expect((await host.namespace.run(["ip", "link", "show", "flannel-wg"])).exitCode).toBe(1);
  expect((await clean()).stdout).toContain("Nothing of flanneld is on this host");
}

function readIndex(host: Host): Promise<string> {
  return host.namespace.exec("cat", "/sys/class/net/flannel-wg/ifindex");
}
