import { describe, expect, test } from "bun:test";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Cluster, PREFIX } from "./cluster.ts";
import { Daemon } from "./daemon.ts";
import { Host } from "./host.ts";
import { NotifySocket } from "./notify-socket.ts";
import { compare, expectInSync } from "./oracle.ts";
import { ping } from "./ping.ts";
import { PingFlow } from "./ping-flow.ts";
import type { Pod } from "./pod.ts";
import { Router } from "./router.ts";
import { Switch } from "./switch.ts";
import { tcpTransfer } from "./transfer.ts";
import { until } from "./until.ts";

const TIMEOUT = 30_000;

/** What the daemon would do on a host of a dual-stack vxlan cluster, by hand: lease, subnet file, device, peers. */
async function standIn(cluster: Cluster, host: Host): Promise<void> {
  const of = (n: number) => ({
    v4: `10.244.${n}.0`,
    v6: `fd00:10:244:${n}::`,
    mac: `02:00:00:00:f4:0${n}`,
    mac6: `02:00:00:00:f6:0${n}`,
  });
  const own = of(host.number);
  const value = {
    PublicIP: host.ipv4,
    PublicIPv6: host.ipv6,
    BackendType: "vxlan",
    BackendData: { VNI: 1, VtepMAC: own.mac },
    BackendV6Data: { VNI: 1, VtepMAC: own.mac6 },
  };
  await cluster.etcd.ctl("put", `${PREFIX}/subnets/${own.v4}-24&${own.v6}-64`, JSON.stringify(value));
  writeFileSync(
    host.subnetFile,
    [
      "FLANNEL_NETWORK=10.244.0.0/16",
      `FLANNEL_SUBNET=10.244.${host.number}.1/24`,
      "FLANNEL_IPV6_NETWORK=fd00:10:244::/48",
      `FLANNEL_IPV6_SUBNET=${own.v6}1/64`,
      "FLANNEL_MTU=1430",
      "FLANNEL_IPMASQ=false",
      "",
    ].join("\n"),
  );
  const device = (dev: string, mac: string, mtu: number, local: string, address: string) =>
    `ip link add ${dev} address ${mac} mtu ${mtu} type vxlan id 1 dev ext0 local ${local} dstport 8472 nolearning
     ip address add ${address} dev ${dev}
     ip link set ${dev} up`;
  await host.namespace.exec(
    "sh",
    "-ec",
    [
      device("flannel.1", own.mac, 1450, host.ipv4, `${own.v4}/32`),
      device("flannel-v6.1", own.mac6, 1430, host.ipv6, `${own.v6}/128`),
      ...cluster.hosts
        .filter((peer) => peer !== host)
        .map((peer) => {
          const { v4, v6, mac, mac6 } = of(peer.number);
          return `ip neighbour replace ${v4} lladdr ${mac} nud permanent dev flannel.1
            bridge fdb replace ${mac} dst ${peer.ipv4} self permanent dev flannel.1
            ip nexthop add id ${peer.number} via ${v4} dev flannel.1 onlink proto 140
            ip route add ${v4}/24 nhid ${peer.number} proto 140
            ip neighbour replace ${v6} lladdr ${mac6} nud permanent dev flannel-v6.1
            bridge fdb replace ${mac6} dst ${peer.ipv6} self permanent dev flannel-v6.1
            ip -6 route add ${v6}/64 via ${v6} dev flannel-v6.1 onlink proto 140`;
        }),
    ].join("\n"),
  );
}

const dualStack = {
  Network: "10.244.0.0/16",
  EnableIPv6: true,
  IPv6Network: "fd00:10:244::/48",
  Backend: { Type: "vxlan" },
};

//   pod ── cni0 ── h1 ── ext0 ─┬─ switch + etcd ─┬─ ext0 ── h2 ── cni0 ── pod
describe("a vxlan pair made by hand", () => {
  test(
    "pods reach each other over both families, and the oracle agrees until something differs",
    async () => {
      await using cluster = await Cluster.create({ hosts: 2, family: "dual", config: dualStack });
      const [h1, h2] = cluster.hosts as [Host, Host];
      for (const host of cluster.hosts) await standIn(cluster, host);
      const [p1, p2] = (await cluster.addPods()) as [Pod, Pod];

      expect(p2.addresses).toEqual(["10.244.2.2", "fd00:10:244:2::2"]);
      expect(await p2.namespace.json("ip", "-j", "link", "show", "eth0")).toMatchObject([{ mtu: 1430 }]);
      for (const address of p2.addresses) {
        const result = await ping(p1, address, { count: 2 });
        expect(result).toMatchObject({ sent: 2, received: 2 });
        expect(result.rtts).toHaveLength(2);
      }
      // 1430 bytes of MTU less 28 of IPv4 and ICMP header fit exactly.
      expect((await ping(p1, p2.ipv4, { count: 1, size: 1402, dontFragment: true })).received).toBe(1);
      expect((await ping(p1, p2.ipv4, { count: 1, size: 1403, dontFragment: true })).received).toBe(0);
      expect((await tcpTransfer(p1, p2, p2.ipv4)).bytes).toBeGreaterThan(3 * 1024 * 1024);
      expect((await tcpTransfer(p2, p1, p1.ipv6)).bytes).toBeGreaterThan(3 * 1024 * 1024);

      await expectInSync(cluster.hosts, cluster.etcd);
      await h1.namespace.exec("ip", "route", "del", "10.244.2.0/24");
      await h1.namespace.exec("ip", "route", "add", "10.244.9.0/24", "via", h2.ipv4);
      await h1.namespace.exec(
        ...["bridge", "fdb", "add", "02:00:00:00:f4:99", "dst", "192.0.2.9", "self", "dev", "flannel.1"],
      );
      expect((await compare([h1], cluster.etcd))[0]?.[1]).toEqual({
        missing: ["route 10.244.2.0/24 via 10.244.2.0 dev flannel.1 onlink"],
        extra: [
          "fdb 02:00:00:00:f4:99 dst 192.0.2.9 permanent dev flannel.1",
          "nexthop 2 used by no route",
          "route 10.244.9.0/24 via 192.0.2.2 dev ext0",
        ],
      });
      expect(expectInSync(cluster.hosts, cluster.etcd, { deadline: 0 })).rejects.toThrow(
        /h1:\n {2}- route 10\.244\.2\.0\/24 via/,
      );
    },
    TIMEOUT,
  );

  test(
    "a flow counts what a partition cost",
    async () => {
      await using on = await Switch.create({ family: "v4" });
      await using h1 = await Host.create(on, 1);
      await using h2 = await Host.create(on, 2);
      await using undisturbed = await PingFlow.start(h1, on.ipv4, { rate: 100 });
      await using flow = await PingFlow.start(h1, h2.ipv4, { rate: 100 });
      await on.separate(1, 2);
      await undisturbed.expectAnswers(20);
      await on.reunite(1, 2);
      await flow.expectAnswers(5);
      const report = await flow.stop();
      expect(report.lost).toBeGreaterThan(5);
      expect(report.longestGap).toBeGreaterThan(100);
      expect(report.duplicates).toBe(0);
      expect(await undisturbed.stop()).toMatchObject({ lost: 0 });

      await h2.isolate();
      expect((await ping(h1, h2.ipv4, { count: 1, deadline: 200 })).received).toBe(0);
      await h2.rejoin();
      expect((await ping(h1, h2.ipv4, { count: 1 })).received).toBe(1);

      await h1.separateFromEtcd();
      expect((await ping(h1, on.ipv4, { count: 1, deadline: 200 })).received).toBe(0);
      expect((await ping(h1, h2.ipv4, { count: 1 })).received).toBe(1);
    },
    TIMEOUT,
  );
});

//   h1 ── switch 1 + etcd ── router ── switch 2 ── h1@2
test(
  "a router joins two segments, and etcd is reached from both",
  async () => {
    await using cluster = await Cluster.create({ hosts: 1, family: "dual" });
    await using far = await Switch.create({ number: 2 });
    await using router = await Router.create(cluster.switch, far);
    const distant = await cluster.addHost(1, far);
    const [near] = cluster.hosts as [Host];
    for (const address of [distant.ipv4, distant.ipv6]) {
      expect((await ping(near, address, { count: 1 })).received).toBe(1);
    }
    expect(await near.namespace.exec("ip", "route", "get", distant.ipv4)).toContain("via 192.0.2.254");
    const health = await distant.namespace.exec(
      ...[
        "env",
        "ETCDCTL_API=3",
        "etcdctl",
        "--endpoints",
        "http://192.0.2.100:2379",
        "get",
        `${PREFIX}/config`,
      ],
    );
    expect(health).toContain("10.244.0.0/16");
    expect(router.namespace.name).toContain("router");
  },
  TIMEOUT,
);

describe("a daemon's run", () => {
  const script = (host: Host, body: string) => {
    const file = join(host.directory, "stand-in");
    writeFileSync(file, `#!/bin/sh\n${body}\n`);
    chmodSync(file, 0o755);
    return file;
  };

  test(
    "reads its log, its flags and its end",
    async () => {
      await using on = await Switch.create({ family: "v4" });
      await using host = await Host.create(on, 1);
      const loop = "trap 'exit 7' TERM; while :; do sleep 0.02; done";
      const file = script(
        host,
        `printf '{"level":"info","msg":"up","flags":"%s"}\\nnot json\\n' "$*" >&2; ${loop}`,
      );
      await using daemon = Daemon.start(host, { file, endpoints: "http://192.0.2.100:2379", nodeId: "one" });
      const line = await daemon.waitForLog(({ msg }) => msg === "up");
      expect(line.flags).toBe(
        `--etcd-endpoints=http://192.0.2.100:2379 --subnet-file=${host.subnetFile} --iface=ext0 --node-id=one`,
      );
      await daemon.waitForLog(({ msg }) => msg === "not json");
      daemon.pause();
      const stopped = async () => (await Bun.file(`/proc/${daemon.pid}/stat`).text()).includes(") T ");
      await until(stopped, { message: "the daemon to be stopped" });
      daemon.resume();
      const end = await daemon.stop();
      expect(end).toMatchObject({ code: 7, signal: null });
      expect(daemon.ready).rejects.toThrow(/the daemon ended \(code 7\)\n.*"up"/);
    },
    TIMEOUT,
  );

  test(
    "leaves nothing running when the test fails half-way",
    async () => {
      let pid = 0;
      const failing = async () => {
        await using on = await Switch.create({ family: "v4" });
        await using host = await Host.create(on, 1);
        await using daemon = Daemon.start(host, {
          file: script(host, "trap '' TERM; while :; do sleep 0.02; done"),
        });
        pid = daemon.pid;
        throw new Error("half-way");
      };
      expect(failing()).rejects.toThrow("half-way");
      await until(async () => !(await Bun.file(`/proc/${pid}/stat`).exists()), {
        message: `process ${pid} ended`,
      });
    },
    TIMEOUT,
  );
});

test("the notify socket keeps datagrams apart", async () => {
  const path = `/tmp/notify-${process.pid}.sock`;
  using socket = new NotifySocket(path);
  for (const text of ["READY=1", "STOPPING=1"]) {
    expect(Bun.spawnSync(["logger", "--socket", path, "--", text]).exitCode).toBe(0);
  }
  await until(() => !socket.has("?") && socket.messages.length === 2, {
    message: "two datagrams",
    deadline: 2_000,
  });
  expect(socket.messages.map((message) => message.split(": ").at(-1))).toEqual(["READY=1", "STOPPING=1"]);
});

test("until says what it waited for and why it failed last", async () => {
  const failing = () => {
    throw new Error("no route");
  };
  expect(until(failing, { message: "a route", deadline: 30 })).rejects.toThrow(
    "not within 30 ms: a route (last error: no route)",
  );
  let calls = 0;
  expect(await until(() => ++calls >= 3 && calls, { message: "three calls", interval: 1 })).toBe(3);
});
