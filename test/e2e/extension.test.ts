/**
 * The samples of backends/extension/README.md as they are written there: pods of three hosts talk, a host leaves, a
 * daemon is restarted and learns what happened meanwhile.
 *
 *   pod ── h1 ── ext0 ─┬─ switch + etcd
 *   pod ── h2 ── ext0 ─┤
 *   pod ── h3 ── ext0 ─┘
 */
import { expect, test } from "bun:test";
import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { readDocument } from "../docs/markdown.ts";
import { Cluster, type NetworkConfig, operatorConfig, PREFIX } from "../lab/cluster.ts";
import { type Daemon, executable } from "../lab/daemon.ts";
import type { Host } from "../lab/host.ts";
import { ping } from "../lab/ping.ts";
import { PingFlow } from "../lab/ping-flow.ts";
import type { Pod } from "../lab/pod.ts";
import { readSubnetFile } from "../lab/subnet-file.ts";
import { tcpTransfer } from "../lab/transfer.ts";
import { until } from "../lab/until.ts";
import { ownLease } from "./leases.ts";
import { expectRefusal } from "./refusal.ts";

const TIMEOUT = 120_000;

/** The config below a heading of the README. */
function sample(name: string): NetworkConfig {
  const section = readDocument("backends/extension/README.md").split(`### ${name}\n`)[1] ?? "";
  const [, text = ""] = /^```json config\n([\s\S]*?)^```$/m.exec(section) ?? [];
  return JSON.parse(text);
}

/** The daemon with a `/run` of its own: what lies there belongs to a machine, and all hosts share one here. */
function withOwnRun(host: Host): string {
  const file = `${host.directory}/flanneld-alone`;
  writeFileSync(file, `#!/bin/sh\nmount -t tmpfs none /run && exec ${executable()} "$@"\n`);
  chmodSync(file, 0o755);
  return file;
}

/** What a sample makes for the peer of that subnet on a host, as text; empty when there is nothing. */
type Show = (host: Host, subnet: string) => Promise<string>;

const showRoute: Show = (host, subnet) => host.namespace.exec("ip", "route", "show", "exact", subnet);

const showPeer: Show = async (host, subnet) => {
  // `wg` speaks to a socket below the daemon's own /run where the kernel has no WireGuard; routes tell nothing here.
  const pids = await host.namespace.pids();
  const inside = [
    "nsenter",
    "--target",
    String(pids[0]),
    "--mount",
    "--net",
    "wg",
    "show",
    "all",
    "allowed-ips",
  ];
  const { stdout } = await host.namespace.run(inside);
  return stdout
    .split("\n")
    .filter((line) => line.includes(subnet))
    .join("\n");
};

interface Sample {
  readonly name: string;
  readonly show: Show;
  /** Whether the network goes on while a daemon is down. */
  readonly survives: boolean;
  /** Payload of the largest ping that must pass: MTU - 28. */
  readonly payload: number;
}

const SAMPLES: readonly Sample[] = [
  { name: "host-gw", show: showRoute, survives: true, payload: 1472 },
  { name: "vxlan", show: showRoute, survives: true, payload: 1422 },
  { name: "wireguard", show: showPeer, survives: false, payload: 1392 },
];

test.each(SAMPLES)(
  "sample $name",
  async ({ name, show, survives, payload }) => {
    await using cluster = await Cluster.create({ hosts: 3, config: sample(name) });
    const start = (host: Host) => cluster.startDaemon(host, { file: withOwnRun(host) });
    const daemons = cluster.hosts.map(start) as [Daemon, Daemon, Daemon];
    await Promise.all(daemons.map((daemon) => daemon.ready));
    const [h1, h2, h3] = cluster.hosts as [Host, Host, Host];
    const [p1, p2, p3] = (await cluster.addPods()) as [Pod, Pod, Pod];
    const all = [
      [p1, p2],
      [p2, p3],
      [p3, p1],
    ] as const;
    for (const [from, to] of all) await untilPing(from, to, daemons[0]);
    expect((await ping(p1, p2.ipv4, { size: payload, dontFragment: true })).received).toBe(3);
    expect((await ping(p1, p2.ipv4, { size: payload + 1, dontFragment: true })).received).toBe(0);
    expect((await tcpTransfer(p1, p3, p3.ipv4)).bytes).toBeGreaterThan(1024 * 1024);

    // h3 leaves while the daemon of h1 is down; who is left keeps talking where the sample says so.
    const subnet3 = (await readSubnetFile(h3.subnetFile)).subnet?.replace(/\.1\/24$/, ".0/24") ?? "";
    expect(await show(h2, subnet3)).not.toBe("");
    const flow = survives ? await PingFlow.start(p1, p2.ipv4) : undefined;
    expect(await daemons[0].stop()).toMatchObject({ code: 0 });
    if (!survives) expect((await ping(p1, p2.ipv4, { count: 1 })).received).toBe(0);
    const { key } = (await ownLease(cluster, h3))!;
    await daemons[2].kill();
    await cluster.etcd.ctl("del", `${PREFIX}/subnets/${key}`);
    await until(async () => (await show(h2, subnet3)) === "", { message: "h2 has removed h3" });
    if (survives) expect(await show(h1, subnet3)).not.toBe("");
    const again = start(h1);
    await again.ready;
    expect(await show(h1, subnet3)).toBe("");
    if (flow) expect((await flow.stop()).lost).toBe(0);
    await untilPing(p1, p2, again);
    expect(again.lines.filter(({ level }) => level === "error")).toEqual([]);
  },
  TIMEOUT,
);

async function untilPing(from: Pod, to: Pod, daemon: Daemon, address = to.ipv4): Promise<void> {
  await until(async () => (await ping(from, address, { count: 1 })).received === 1, {
    message: () => `${from.host.name} cannot ping ${to.host.name}\n${daemon.tail()}`,
    deadline: 15_000,
  });
}

const failing = (commands: Readonly<Record<string, string>>, family: "v4" | "v6" = "v4"): NetworkConfig =>
  operatorConfig(family, { Type: "extension", ...commands });

test(
  "a start command that fails ends the start, with the command's last word and nothing left",
  async () => {
    const PreStartupCommand = "echo no such thing >&2; exit 7";
    await using cluster = await Cluster.create({ hosts: 1, config: failing({ PreStartupCommand }) });
    const refusal = await expectRefusal(cluster, cluster.hosts[0]!);
    expect(refusal.code).toBe("EXTENSION_COMMAND");
    expect(refusal.message).toContain("PreStartupCommand ended with 7: no such thing");
  },
  TIMEOUT,
);

test(
  "IPv6 alone: a peer command that fails is a finding, is tried again, and cleanup runs what it has to",
  async () => {
    const done = "$(dirname $NOTIFY_SOCKET)";
    const route = "ip -6 route replace $IPV6SUBNET via $PUBLIC_IPV6";
    const commands = {
      SubnetAddCommand: `[ -e ${done}/ok ] || { echo not yet >&2; exit 3; }; ${route}; echo $SUBNET $IPV6SUBNET >>${done}/added`,
      SubnetRemoveCommand: `ip -6 route flush exact $IPV6SUBNET; echo $IPV6SUBNET >>${done}/removed`,
      ShutdownCommand: `test ! -e ${done}/ok || sleep 1; echo $IPV6SUBNET >>${done}/down`,
    };
    await using cluster = await Cluster.create({ hosts: 2, family: "v6", config: failing(commands, "v6") });
    const [h1, h2] = cluster.hosts as [Host, Host];
    // The watchdog goes on during a stop: it has to be fed then, too.
    const daemons = await cluster.startDaemons({ env: { WATCHDOG_USEC: "400000" } });
    const [d1] = daemons as [Daemon];
    const raised = await d1.waitForLog(({ msg }) => /backend cannot program all peers/.test(String(msg)));
    expect(String(raised.msg)).toMatch(/SubnetAddCommand ended with 3: not yet/);
    for (const host of [h1, h2]) writeFileSync(`${host.directory}/ok`, "");
    await d1.waitForLog(({ msg }) => /^over: the backend cannot program/.test(String(msg)));
    const lease2 = (await ownLease(cluster, h2))!;
    const lease1 = (await ownLease(cluster, h1))!;
    const cidr = (key: string) => `${key.replace("-", "/")}\n`;
    expect(readFileSync(`${h1.directory}/added`, "utf8")).toBe(`0.0.0.0/0 ${cidr(lease2.key)}`);
    const [p1, p2] = (await cluster.addPods()) as [Pod, Pod];
    await untilPing(p1, p2, d1, p2.ipv6);
    await h1.namespace.ip("link set ext0 mtu 1400");
    await until(async () => (await readSubnetFile(h1.subnetFile)).mtu === 1_400, { message: "FLANNEL_MTU" });
    // A command that takes longer than other stops do is waited for.
    expect(await d1.stop()).toMatchObject({ code: 0 });
    const messages = d1.notifications;
    expect(
      messages.slice(messages.indexOf("STOPPING=1")).filter((each) => each === "WATCHDOG=1").length,
    ).toBeWithin(3, 9);
    expect(readFileSync(`${h1.directory}/down`, "utf8")).toBe(cidr(lease1.key));
    expect(existsSync(`${h1.directory}/removed`)).toBe(false);
    const second = cluster.startDaemon(h1);
    await second.ready;
    await second.kill();
    const { stdout, stderr, exitCode } = await h1.namespace.run(
      [
        executable(),
        "cleanup",
        `--subnet-file=${h1.subnetFile}`,
        `--etcd-endpoints=${cluster.etcd.endpoint}`,
      ],
      { env: { NOTIFY_SOCKET: `${h1.directory}/none` } },
    );
    expect({ exitCode, stdout, stderr }).toMatchObject({ exitCode: 0 });
    expect(stdout).toContain(`peer ${lease2.key}: SubnetRemoveCommand`);
    expect(readFileSync(`${h1.directory}/removed`, "utf8")).toBe(cidr(lease2.key));
    expect(existsSync(`${h1.subnetFile}.extension`)).toBe(false);
  },
  TIMEOUT,
);
