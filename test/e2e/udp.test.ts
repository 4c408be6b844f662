/**
 * The udp backend with real packets: fast and slow hosts, errors that are told, strangers, what upstream's nodes send.
 * What it does as other backends do is in three-hosts/.
 *
 *   pod ── cni0 ── h1, h2, h3 ── ext0 ── switch + etcd
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { chmodSync, rmSync, writeFileSync } from "node:fs";
import { Cluster, networkConfig, PREFIX } from "../lab/cluster.ts";
import { type Daemon, executable } from "../lab/daemon.ts";
import type { Host } from "../lab/host.ts";
import { ping } from "../lab/ping.ts";
import { PingFlow } from "../lab/ping-flow.ts";
import type { Pod } from "../lab/pod.ts";
import { tcpTransfer } from "../lab/transfer.ts";
import { until } from "../lab/until.ts";
import { command, readStatus } from "./ask.ts";
import { runCommand } from "./command.ts";
import { untilNoReason, untilReason } from "./health/readiness.ts";
import { changesHands, followsMtu, refusedStart, refusesHost, untilReached } from "./udp-scenarios.ts";

const TIMEOUT = 90_000;
const MIB = 1024 * 1024;

const UDP = { Type: "udp", MembersOnly: true };

const stack = new AsyncDisposableStack();
let cluster: Cluster;
let [h1, h2, h3]: Host[] = [];
let [d1]: Daemon[] = [];
let [p1, p2, p3]: Pod[] = [];

beforeAll(async () => {
  // The third host moves packet by packet, as on an old kernel: nothing in the wire format tells.
  const config = networkConfig("dual", { Type: "udp", Offload: "off" });
  cluster = stack.use(await Cluster.create({ hosts: 3, family: "dual", config }));
  [h1, h2, h3] = cluster.hosts;
  await cluster.startDaemon(h3!).ready;
  // What other backends do when told so, this one does anyway.
  await cluster.configure(networkConfig("dual", UDP));
  [d1] = [cluster.startDaemon(h1!), cluster.startDaemon(h2!)];
  await Promise.all(cluster.daemons.map((daemon) => daemon.ready));
  [p1, p2, p3] = await cluster.addPods();
  for (const pod of [p2, p3]) await untilReached(p1!, pod!.ipv4);
}, TIMEOUT);
afterAll(() => stack.disposeAsync(), TIMEOUT);

test(
  "fragments and TCP in bulk go through between fast and slow hosts, in both families",
  async () => {
    for (const [from, to] of [
      [p1, p2],
      [p1, p3],
      [p3, p2],
    ] as const) {
      for (const address of to!.addresses) {
        expect((await ping(from!, address, { size: 4_000 })).received).toBe(3);
        expect((await tcpTransfer(from!, to!, address, { bytes: 16 * MIB })).bytes).toBeGreaterThan(8 * MIB);
      }
    }
    for (const { namespace } of cluster.hosts) {
      const counted = ["TcpInCsumErrors", "UdpInCsumErrors", "IpInHdrErrors"];
      const counters = await namespace.exec("nstat", "-asz", ...counted);
      for (const [, count] of counters.matchAll(/^\w+ +(\d+)/gm)) expect(count).toBe("0");
    }
    expect((await readStatus(h1!)).backend?.details?.path).toStartWith("fast: TSO");
    expect((await readStatus(h3!)).backend?.details?.path).toBe("slow: packet by packet");
    expect((await command(h1!, "status")).stdout).toContain("path fast: TSO");
    expect((await readStatus(h1!)).findings).toEqual([]);
  },
  TIMEOUT,
);

test(
  "every host counts as a hop, both ways, and tells when hops are used up or nobody has an address",
  async () => {
    for (const [address, ttl] of [
      [p2!.ipv4, 60],
      [p2!.ipv6, 60],
    ] as const) {
      // Two routers and the tunnel in between, which counts at both of its ends.
      expect((await ping(p1!, address, { count: 1 })).output).toContain(`ttl=${ttl}`);
    }
    const hop = async (address: string, ttl: number) =>
      (await p1!.namespace.run(["ping", "-n", "-c1", "-W2", "-t", String(ttl), address])).stdout;
    const bases = async (host: Host): Promise<string[]> => {
      const shown = "-j address show dev flannel0 scope global";
      const [{ addr_info }] = await host.namespace.json("ip", ...shown.split(" "));
      return addr_info.map(({ local }) => local);
    };
    const [near, far] = [await bases(h1!), await bases(h2!)];
    for (const [n, address] of [p2!.ipv4, p2!.ipv6].entries()) {
      expect(await hop(address, 2)).toMatch(
        new RegExp(`From ${near[n]}.*(exceeded|Time to live|Hop limit)`, "i"),
      );
      expect(await hop(address, 3)).toMatch(
        new RegExp(`From ${far[n]}.*(exceeded|Time to live|Hop limit)`, "i"),
      );
    }
    // The first block of a network is never given out.
    const nobody = await p1!.namespace.run(["ping", "-n", "-c1", "-W2", "10.244.0.77"]);
    expect(nobody.stdout).toMatch(/Net(work)? (is )?unreachable/i);
    const nobody6 = await p1!.namespace.run(["ping", "-n", "-c1", "-W2", "fd00:10:244::77"]);
    expect(nobody6.stdout).toMatch(/unreachable: No route/i);
  },
  TIMEOUT,
);

test(
  "a path that carries less: packets with DF are answered with its size, others go out in fragments",
  async () => {
    // As if a tunnel lay on the way to h2.
    await h1!.namespace.ip(`route add ${h2!.ipv4}/32 dev ext0 mtu 1300`);
    try {
      const free = ["ping", "-n", "-c3", "-i0.1", "-W1", "-s1400", "-Mdont", p2!.ipv4];
      expect((await p1!.namespace.run(free)).stdout).toContain("3 received");
      const refused = await ping(p1!, p2!.ipv4, { size: 1_400, dontFragment: true });
      expect(refused.received).toBe(0);
      expect(refused.output).toMatch(/mtu ?[=:] ?1272/i);
      const { bytes } = await tcpTransfer(p1!, p2!, p2!.ipv4, { bytes: 8 * MIB });
      expect(bytes).toBeGreaterThan(4 * MIB);
    } finally {
      await h1!.namespace.ip(`route del ${h2!.ipv4}/32 dev ext0`);
      await p1!.namespace.ip("route flush cache");
    }
  },
  TIMEOUT,
);

test(
  "the same over IPv6, whose packets nobody may cut; where not even 1,280 bytes fit, the datagrams are cut instead",
  async () => {
    const route = `${h2!.ipv6}/128 dev ext0`;
    try {
      await h1!.namespace.ip(`-6 route add ${route} mtu 1400`);
      const refused = await ping(p1!, p2!.ipv6, { size: 1_352, dontFragment: true });
      expect(refused.received).toBe(0);
      expect(refused.output).toMatch(/mtu ?[=:] ?1352/i);
      await p1!.namespace.ip("-6 route flush cache");
      await h1!.namespace.ip(`-6 route change ${route} mtu 1300`);
      expect((await ping(p1!, p2!.ipv6, { size: 1_232 })).received).toBe(3);
    } finally {
      await h1!.namespace.ip(`-6 route del ${route}`);
      await p1!.namespace.ip("-6 route flush cache");
    }
  },
  TIMEOUT,
);

test(
  "what no member sent, and what is no packet, is dropped, counted and told; the rest goes on",
  async () => {
    await using flow = await PingFlow.start(p1!, p2!.ipv4, { rate: 50 });
    // A member's address with another port, and an address that is no member's at all.
    const send = (from: string, text: string) =>
      `socat|-u|SYSTEM:printf ${text}|UDP4-SENDTO:${h1!.ipv4}:8285,bind=${from}`.split("|");
    expect((await h2!.namespace.run(send(`${h2!.ipv4}:9999`, "x"))).exitCode).toBe(0);
    expect((await cluster.switch.namespace.run(send(":8285", "E"))).exitCode).toBe(0);
    await until(async () => /2 strangers/.test((await readStatus(h1!)).backend?.details?.dropped ?? ""), {
      message: async () => JSON.stringify((await readStatus(h1!)).backend),
    });
    await flow.expectAnswers(10);
    expect((await flow.stop()).lost).toBe(0);
  },
  TIMEOUT,
);

test(
  "the MTU of the interface changes: device and subnet file follow at once; what one session found ends with it",
  async () => {
    await followsMtu({ cluster, host: h1!, daemon: d1!, config: networkConfig("dual", UDP) });
    await untilReached(p1!, p2!.ipv4);
  },
  TIMEOUT,
);

test(
  "a node of upstream flannel: its lease says nothing, its datagrams are bare packets",
  async () => {
    const key = `${PREFIX}/subnets/10.244.201.0-24`;
    const other = cluster.switch;
    await cluster.etcd.ctl("put", key, JSON.stringify({ PublicIP: other.ipv4 }));
    const peer = other.namespace.spawn(
      process.execPath,
      new URL("./udp-peer.ts", import.meta.url).pathname,
      other.ipv4,
    );
    try {
      // The peer answers echo requests to 10.244.201.2 by itself, packet for packet.
      await untilReached(p1!, "10.244.201.2");
      expect((await ping(p1!, "10.244.201.2", { size: 1_400 })).received).toBe(3);
    } finally {
      peer.kill();
      await cluster.etcd.ctl("del", key);
    }
  },
  TIMEOUT,
);

test(
  "a restart keeps device, address and routes: nothing leaves in clear",
  async () => {
    const route = () => h1!.namespace.exec("ip", "route", "show", "dev", "flannel0");
    const before = await route();
    await d1!.stop();
    expect((await route()).replaceAll(" linkdown", "")).toBe(before);
    d1 = cluster.startDaemon(h1!);
    await d1.ready;
    expect(await route()).toBe(before);
  },
  TIMEOUT,
);

test(
  "a device that somebody deletes is made again",
  async () => {
    await h1!.namespace.ip("link delete flannel0");
    await untilReached(p1!, p2!.ipv4);
    expect(await h1!.namespace.exec("ip", "route")).toContain("10.244.0.0/16 dev flannel0");
  },
  TIMEOUT,
);

test(
  "a device that is gone and cannot be made again is a reason not to be ready, until it can",
  async () => {
    await d1!.stop();
    const wrapper = `${h1!.directory}/with-tun`;
    const own = "mount -t tmpfs none /dev/net && mknod /dev/net/tun c 10 200";
    writeFileSync(wrapper, `#!/bin/sh\nexec unshare -m sh -c '${own} && exec "$@"' - ${executable()} "$@"\n`);
    chmodSync(wrapper, 0o755);
    d1 = cluster.startDaemon(h1!, { file: wrapper });
    await d1.ready;
    await untilReached(p1!, p2!.ipv4);
    const tun = `/proc/${d1.pid}/root/dev/net/tun`;
    rmSync(tun);
    await h1!.namespace.ip("link delete flannel0");
    expect((await untilReason(h1!, "UDP_FORWARDING_ENDED")).text).toContain("cannot open /dev/net/tun");
    await h1!.namespace.exec("mknod", tun, "c", "10", "200");
    await untilNoReason(h1!);
    await untilReached(p1!, p2!.ipv4);
  },
  TIMEOUT,
);

test(
  "a taken port, a device in use and a missing one are refused in words; cleanup leaves nothing",
  async () => {
    expect(await refusedStart(cluster, h1!)).toContain('"UDP_PORT_IN_USE"');
    // What runs is not touched by one that failed.
    expect((await ping(p1!, p2!.ipv4)).received).toBe(3);
    await d1!.stop();
    const device = "TUN,tun-name=flannel0,tun-type=tun,iff-no-pi";
    const holder = h1!.namespace.spawn("socat", "-u", device, "OPEN:/dev/null");
    await until(async () => !(await h1!.namespace.ip("link show flannel0")).includes("NO-CARRIER"), {
      message: "the device is held",
    });
    expect(await refusedStart(cluster, h1!)).toContain('"UDP_TUN_BUSY"');
    holder.kill();
    await holder.exited;
    const { stdout, exitCode } = await runCommand(cluster, h1!, ["cleanup"]);
    expect({ stdout, exitCode }).toMatchObject({ exitCode: 0 });
    expect(stdout).toContain("device flannel0");
    expect(await h1!.namespace.exec("ip", "link")).not.toContain("flannel0");
    await refusesHost(cluster, h1!, UDP);
  },
  TIMEOUT,
);

test(
  "vxlan takes over, and gives back, at last for IPv6 alone: nothing of the other is left",
  () => changesHands(cluster, [h1!, h2!], [p1!, p2!]),
  TIMEOUT,
);
