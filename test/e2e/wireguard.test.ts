/**
 * The wireguard backend with WireGuard in user space (wireguard-go), as on hosts whose kernel has none; what it does
 * the same on all hosts is in wireguard-scenarios.ts. Where this kernel has WireGuard, the kernel's is what runs here.
 *
 *   pod ── cni0 ── h1 ── flannel-wg ═ ext0 ─┬─ switch + etcd ─┬─ ext0 ═ flannel-wg ── h2 ── cni0 ── pod
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { Cluster, networkConfig, PREFIX } from "../lab/cluster.ts";
import type { Host } from "../lab/host.ts";
import { expectInSync } from "../lab/oracle.ts";
import { PingFlow } from "../lab/ping-flow.ts";
import type { Pod } from "../lab/pod.ts";
import { until } from "../lab/until.ts";
import { readStatus } from "./ask.ts";
import { untilNoReason, untilReason } from "./health/readiness.ts";
import { putLeases } from "./leases.ts";
import { Capture, expectEncrypted } from "./wireguard-capture.ts";
import {
  expectAllReach,
  expectMesh,
  Mesh,
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

test(
  "IPv6 alone, one device: pods reach each other, encrypted, over the exact MTU",
  async () => {
    await using mesh = await Mesh.create({ family: "v6", options: { Mode: "auto" } });
    await carriesEncrypted(mesh);
  },
  TIMEOUT,
);

describe("two hosts, dual stack, one config after another", () => {
  let mesh: Mesh;
  beforeAll(async () => {
    mesh = await Mesh.create({ family: "dual", options: { PSK } });
  }, TIMEOUT);
  afterAll(() => mesh[Symbol.asyncDispose]());

  test("a device per family, a secret: encrypted, over the exact MTU", () => carriesEncrypted(mesh), TIMEOUT);

  // In a row: each step starts from what the one before left, and none is kept from its ports by it.
  test.each<[name: string, options: object, ports: Record<string, number>, over: "ipv4" | "ipv6"]>([
    [
      "the ports swapped",
      { ListenPort: 51821, ListenPortV6: 51820 },
      { "flannel-wg": 51821, "flannel-wg-v6": 51820 },
      "ipv4",
    ],
    ["one device, on the port of the second", { Mode: "auto" }, { "flannel-wg": 51820 }, "ipv4"],
    ["one device, over IPv6", { Mode: "ipv6", ListenPort: 51821 }, { "flannel-wg": 51821 }, "ipv6"],
    ["two again", {}, { "flannel-wg": 51820, "flannel-wg-v6": 51821 }, "ipv4"],
    ["one device, over IPv4", { Mode: "ipv4" }, { "flannel-wg": 51820 }, "ipv4"],
  ])(
    "%s",
    async (_, options, ports, over) => {
      await mesh.restartWith(networkConfig("dual", { Type: "wireguard", ...options }));
      const [h1, h2] = mesh.hosts as [Host, Host];
      const links: { ifname: string }[] = await h1.namespace.json("ip", "-j", "link", "show");
      const devices = links.map(({ ifname }) => ifname).filter((name) => name.startsWith("flannel"));
      expect(devices.sort()).toEqual(Object.keys(ports));
      for (const dev of devices) expect((await showDevice(h1, dev)).port).toBe(ports[dev] ?? 0);
      await expectAllReach(mesh.pods);
      const there = over === "ipv4" ? h2.ipv4 : `[${h2.ipv6}]`;
      expect((await showDevice(h1)).peers.map(({ endpoint }) => endpoint)).toEqual([
        `${there}:${ports["flannel-wg"]}`,
      ]);
      await mesh.expectEncrypted();
    },
    TIMEOUT,
  );

  test(
    "IPv6 removed, and then another network: of the former nothing is left",
    async () => {
      const [host] = mesh.hosts as [Host];
      const show = async () => {
        const { stdout } = await host.namespace.run([
          "sh",
          "-c",
          "ip -o address show dev flannel-wg scope global; ip route show proto 140; ip -6 route show proto 140",
        ]);
        return stdout;
      };
      await mesh.restartWith(networkConfig("v4", { Type: "wireguard", Mode: "auto" }));
      expect(await show()).not.toContain("fd00:");
      await mesh.restartWith({ Network: "10.99.0.0/16", Backend: { Type: "wireguard", Mode: "auto" } });
      const shown = await show();
      expect(shown).not.toContain("10.244.");
      expect(shown.match(/^(blackhole )?10\.99\.0\.0\/16/gm)?.sort()).toEqual([
        "10.99.0.0/16",
        "blackhole 10.99.0.0/16",
      ]);
      expect(shown).toMatch(/inet 10\.99\./);
    },
    TIMEOUT,
  );
});

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
    const first = await cluster.startDaemons();
    await expectInSync(cluster.hosts, cluster.etcd);
    for (const daemon of first) await daemon.stop();
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
