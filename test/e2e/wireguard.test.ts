/**
 * The wireguard backend with WireGuard in user space (wireguard-go), as on hosts whose kernel has none; what it does
 * the same on all hosts is in wireguard-scenarios.ts. Where this kernel has WireGuard, the kernel's is what runs here.
 *
 *   pod ── cni0 ── h1 ── flannel-wg ═ ext0 ─┬─ switch + etcd ─┬─ ext0 ═ flannel-wg ── h2 ── cni0 ── pod
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { Cluster, networkConfig, PREFIX } from "../lab/cluster.ts";
import type { Host } from "../lab/host.ts";
import { PingFlow } from "../lab/ping-flow.ts";
import type { Pod } from "../lab/pod.ts";
import { until } from "../lab/until.ts";
import { readStatus } from "./ask.ts";
import { untilNoReason, untilReason } from "./health/readiness.ts";
import { putLeases } from "./leases.ts";
import { Capture, expectEncrypted } from "./wireguard-capture.ts";
import {
  daemonOptions,
  expectAllReach,
  expectMesh,
  keyFile,
  Mesh,
  type MeshOptions,
  openDefaultRoute,
  showDevice,
  startDaemons,
} from "./wireguard-lab.ts";
import {
  carriesEncrypted,
  changesInPlace,
  cleansUp,
  followsMtu,
  followsNewKey,
  forgets,
  healsEncrypted,
  healsPeers,
  survivesRestarts,
} from "./wireguard-scenarios.ts";

const TIMEOUT = 120_000;
const PSK = Buffer.alloc(32, 9).toString("base64");

test.each<[name: string, options: MeshOptions]>([
  ["dual stack, a device per family, a secret", { family: "dual", options: { PSK } }],
  ["IPv6 alone, one device", { family: "v6", options: { Mode: "auto" } }],
  ["dual stack over one device", { family: "dual", options: { Mode: "ipv6" } }],
])(
  "%s: pods reach each other, encrypted, over the exact MTU",
  async (_, options) => {
    await using mesh = await Mesh.create(options);
    await carriesEncrypted(mesh);
  },
  TIMEOUT,
);

describe("three hosts, IPv4", () => {
  let mesh: Mesh;
  beforeAll(async () => {
    mesh = await Mesh.create({ hosts: 3, options: { PersistentKeepaliveInterval: 1 } });
  }, TIMEOUT);
  afterAll(() => mesh[Symbol.asyncDispose]());

  test("pods reach each other, encrypted, over the exact MTU", () => carriesEncrypted(mesh), TIMEOUT);
  test("what is damaged is repaired within 3 s, nothing in clear", () => healsEncrypted(mesh), TIMEOUT);
  test("peers that somebody changes are right again", () => healsPeers(mesh), TIMEOUT);
  test("restarts and crashes of the daemon lose nothing", () => survivesRestarts(mesh, 100), TIMEOUT);
  test("device and subnet file follow the MTU of the interface", () => followsMtu(mesh, 1), TIMEOUT);
  test("a new key of a host leaves no old peer", () => followsNewKey(mesh), TIMEOUT);
  test("a host that goes is forgotten", () => forgets(mesh, 3), TIMEOUT);
  test("another port and another secret are taken in place", () => changesInPlace(mesh), TIMEOUT);
  test("cleanup leaves nothing", () => cleansUp(mesh, 2), TIMEOUT);
});

test(
  "a process in user space that dies is started again, and nothing is in clear meanwhile",
  async () => {
    await using mesh = await Mesh.create();
    await expectAllReach(mesh.pods);
    const h1 = mesh.host(1);
    const pids = await processesOf(h1, "wireguard-go");
    // Where the kernel has WireGuard there is none, and nothing to show.
    if (pids.length === 0) return;
    for (const pid of pids) process.kill(pid, "SIGKILL");
    await until(async () => (await showDevice(h1)).peers.length === 1, {
      message: "another process makes the device",
      deadline: 5_000,
    });
    expect(await processesOf(h1, "wireguard-go")).not.toEqual(pids);
    await expectAllReach(mesh.pods);
    await mesh.expectEncrypted();
  },
  TIMEOUT,
);

async function processesOf(host: Host, name: string): Promise<number[]> {
  const pids = await host.namespace.pids();
  return pids.filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/comm`, "utf8").trim() === name;
    } catch {
      return false;
    }
  });
}

test(
  "vxlan to wireguard and on to host-gw: nothing in clear from the moment all are switched, nothing left behind",
  async () => {
    await using cluster = await Cluster.create({ hosts: 2, config: networkConfig("v4") });
    for (const daemon of await cluster.startDaemons()) await daemon.stop();
    for (const host of cluster.hosts) await openDefaultRoute(host);
    const pods = await cluster.addPods();
    const [p1, p2] = pods as [Pod, Pod];
    await using flow = await PingFlow.start(p1, p2.ipv4, { rate: 50 });
    await cluster.configure(networkConfig("v4", { Type: "wireguard" }));
    const during = await Promise.all(cluster.hosts.map((host) => Capture.start(host)));
    const daemons = await startDaemons(cluster);
    const after = await Promise.all(cluster.hosts.map((host) => Capture.start(host)));
    await expectAllReach(pods);
    await flow.stop();
    await expectEncrypted(after);
    for (const capture of during) {
      const { clear, encrypted } = await capture.stop();
      // The old tunnel may work until it is taken down; past it nothing went.
      expect(clear.filter((line) => !line.includes(".8472: "))).toEqual([]);
      expect(encrypted).toBeGreaterThan(0);
    }
    for (const host of cluster.hosts) {
      expect(await host.namespace.exec("ip", "-o", "link", "show", "type", "vxlan")).toBe("");
    }
    for (const daemon of daemons) await daemon.stop();
    await cluster.configure(networkConfig("v4", { Type: "host-gw" }));
    await startDaemons(cluster);
    await expectAllReach(pods);
    for (const host of cluster.hosts) {
      expect((await host.namespace.run(["ip", "link", "show", "flannel-wg"])).exitCode).toBe(1);
      expect(await host.namespace.exec("ip", "route", "show", "proto", "140")).not.toMatch(
        /blackhole|flannel/,
      );
    }
  },
  TIMEOUT,
);

test(
  "peers that cannot be used are named, and the others work; that it runs in user space is told",
  async () => {
    await using mesh = await Mesh.create();
    const { cluster } = mesh;
    const h1 = mesh.host(1);
    const { publicKey } = await showDevice(h1);
    const lease = (BackendType: string, BackendData: unknown) => ({
      PublicIP: "192.0.2.77",
      PublicIPv6: null,
      BackendType,
      BackendData,
    });
    await putLeases(cluster, [
      { key: "10.244.250.0-24", value: lease("vxlan", { VNI: 1, VtepMAC: "02:00:00:00:00:77" }) },
      { key: "10.244.251.0-24", value: lease("wireguard", { Port: 51820 }) },
      { key: "10.244.252.0-24", value: lease("wireguard", { PublicKey: "c2hvcnQ=", Port: 51820 }) },
      { key: "10.244.253.0-24", value: lease("wireguard", { PublicKey: publicKey, Port: 51820 }) },
    ]);
    const { text: clone } = await untilReason(h1, "WIREGUARD_KEY_CLONED");
    expect(clone).toContain("10.244.253.0-24");
    const text = JSON.stringify(await readStatus(h1));
    const kinds = await h1.namespace.exec("ip", "-d", "-o", "link", "show", "flannel-wg");
    if (kinds.includes("tun")) expect(text).toContain("WIREGUARD_IN_USERSPACE");
    await cluster.etcd.ctl("del", `${PREFIX}/subnets/10.244.253.0-24`);
    await untilNoReason(h1);
    await expectMesh(cluster);
    await expectAllReach(mesh.pods);
  },
  TIMEOUT,
);

test(
  "a bad key file is refused and left alone; a port in use is named, and nothing half-made stays",
  async () => {
    await using cluster = await Cluster.create({
      hosts: 1,
      config: networkConfig("v4", { Type: "wireguard" }),
    });
    const [host] = cluster.hosts as [Host];
    writeFileSync(keyFile(host), "bm90IGEga2V5", { mode: 0o400 });
    const refused = cluster.startDaemon(host, daemonOptions(host));
    await refused.ready.catch(() => {});
    expect(refused.tail()).toContain("WIREGUARD_KEY_FILE");
    expect(refused.tail()).not.toContain("bm90IGEga2V5");
    expect(readFileSync(keyFile(host), "utf8")).toBe("bm90IGEga2V5");

    writeFileSync(keyFile(host), Buffer.alloc(32, 64).toString("base64"), { mode: 0o400 });
    const holder = host.namespace.spawn("socat", "-u", "UDP4-RECV:51820", "OPEN:/dev/null");
    await until(async () => (await host.namespace.exec("ss", "-ulnH")).includes(":51820"), {
      message: "the port is taken",
    });
    const again = cluster.startDaemon(host, daemonOptions(host));
    await again.ready.catch(() => {});
    expect(again.tail()).toContain("WIREGUARD_PORT_IN_USE");
    expect(again.tail()).not.toContain(Buffer.alloc(32, 64).toString("base64"));
    expect((await host.namespace.run(["ip", "link", "show", "flannel-wg"])).exitCode).toBe(1);
    expect(await host.namespace.exec("ip", "route", "show", "proto", "140")).toBe("");
    holder.kill();
    await holder.exited;
    await cluster.startDaemon(host, daemonOptions(host)).ready;
  },
  TIMEOUT,
);
