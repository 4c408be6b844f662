/** Longer parts of `udp.test.ts`, on its hosts. */
import { expect } from "bun:test";
import { chmodSync, writeFileSync } from "node:fs";
import { type Cluster, type NetworkConfig, networkConfig } from "../lab/cluster.ts";
import { type Daemon, type DaemonOptions, executable } from "../lab/daemon.ts";
import type { Host } from "../lab/host.ts";
import { ping } from "../lab/ping.ts";
import type { Pod } from "../lab/pod.ts";
import { readSubnetFile } from "../lab/subnet-file.ts";
import { until } from "../lab/until.ts";
import { readStatus } from "./ask.ts";

/** A host with its daemon, and the config it runs with. */
export interface Running {
  readonly cluster: Cluster;
  readonly host: Host;
  readonly daemon: Daemon;
  readonly config: NetworkConfig;
}

/** Device and subnet file follow the interface; a finding that is shown then is over when the next session comes. */
export async function followsMtu({ cluster, host, daemon, config }: Running): Promise<void> {
  const mtus = async () => [
    Number(await host.namespace.exec("cat", "/sys/class/net/flannel0/mtu")),
    (await readSubnetFile(host.subnetFile)).mtu,
  ];
  const untilMtu = (mtu: number) =>
    until(async () => (await mtus()).every((each) => each === mtu), {
      message: async () => `MTU ${mtu}, not ${await mtus()}`,
      deadline: 6_000,
    });
  const codes = async () => (await readStatus(host)).findings.map(({ code }) => code);
  // The look that the change brings about finds strangers at it.
  const stranger = `while :; do echo x | socat -u - UDP4-SENDTO:${host.ipv4}:8285; sleep 0.05; done`;
  const sender = cluster.switch.namespace.spawn("sh", "-c", stranger);
  await host.namespace.ip("link set ext0 mtu 1400");
  await untilMtu(1_352);
  await until(async () => (await codes()).includes("UDP_STRANGERS"), { message: "the finding" });
  sender.kill();
  await sender.exited;
  // Another session takes over. It has seen no stranger.
  await cluster.configure({ ...config, IPv6SubnetMax: "fd00:10:244:bffe::" });
  await daemon.waitForLog(({ msg }) => msg === "applying the new network config");
  await until(async () => (await codes()).length === 0, {
    message: async () => `no finding, but ${await codes()}`,
    deadline: 8_000,
  });
  await host.namespace.ip("link set ext0 mtu 1500");
  await untilMtu(1_452);
}

/** What a second daemon on a host says before it gives up. */
export async function refusedStart(
  cluster: Cluster,
  host: Host,
  options: DaemonOptions = {},
): Promise<string> {
  const flags = ["--subnet-file", `${host.directory}/second.env`, "--node-id", "second"];
  await using second = cluster.startDaemon(host, { flags, ...options });
  expect((await second.ended(20_000)).code).not.toBe(0);
  return second.tail();
}

/** Everything on a host without daemon that the backend cannot do without, taken away bit by bit. */
export async function refusesHost(
  cluster: Cluster,
  host: Host,
  backend: Readonly<Record<string, unknown>>,
): Promise<void> {
  const { namespace } = host;
  const refused = (options?: DaemonOptions) => refusedStart(cluster, host, options);
  const within = (name: string, command: string): DaemonOptions => {
    const file = `${host.directory}/${name}`;
    writeFileSync(file, `#!/bin/sh\nexec ${command} ${executable()} "$@"\n`);
    chmodSync(file, 0o755);
    return { file };
  };
  const without = `unshare -m sh -c 'mount -t tmpfs none /dev/net && exec "$@"' -`;
  expect(await refused(within("without-tun", without))).toContain('"UDP_TUN_MISSING"');
  expect(await refused({ env: { BUN_JSC_useJIT: "0" } })).toContain('"UDP_NO_FFI"');

  await namespace.ip("link add flannel0 type bridge");
  expect(await refused()).toContain('"UDP_TUN_REFUSED"');
  // What is somebody else's is not touched by that.
  await namespace.ip("link delete flannel0 type bridge");

  await namespace.exec("sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1");
  // As the node itself: another one would get no lease with this address.
  expect(await refused({ flags: [] })).toMatch(/"UDP_DEVICE_REFUSED".*address on flannel0/);
  expect(await namespace.exec("ip", "link")).not.toContain("flannel0");
  await namespace.exec("sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=0");

  await cluster.configure(networkConfig("dual", { ...backend, Port: 853 }));
  const bounded = within("unprivileged", "setpriv --bounding-set -net_bind_service");
  expect(await refused(bounded)).toMatch(/"UDP_SOCKET_REFUSED".*:853: EACCES/);
}

/** Another backend takes over on some hosts, and gives back, first to both families and then to one. */
export async function changesHands(
  cluster: Cluster,
  hosts: readonly [Host, Host],
  [from, to]: readonly [Pod, Pod],
): Promise<void> {
  const devices = async (host: Host) => {
    const links = await host.namespace.json("ip", "-j", "link");
    const names = links.map(({ ifname }) => ifname);
    return names.filter((name) => name.startsWith("flannel")).sort();
  };
  for (const [type, family, expected] of [
    ["vxlan", "dual", ["flannel-v6.1", "flannel.1"]],
    ["udp", "dual", ["flannel0"]],
    ["udp", "v6", ["flannel0"]],
  ] as const) {
    await cluster.configure(networkConfig(family, { Type: type }));
    await Promise.all(cluster.daemons.filter((each) => each.running).map((each) => each.stop()));
    await Promise.all(hosts.map((host) => cluster.startDaemon(host).ready));
    if (family === "dual") await untilReached(from, to.ipv4);
    await untilReached(from, to.ipv6);
    for (const host of hosts) expect(await devices(host)).toEqual([...expected]);
  }
  const own = (option: string, object: string) =>
    hosts[0].namespace.exec("ip", option, object, "show", "dev", "flannel0");
  expect([await own("-4", "route"), await own("-4", "address")]).toEqual(["", ""]);
  expect(await own("-6", "route")).toContain("fd00:10:244::/48 proto 140");
  const { mtu, network, ipv6Network } = await readSubnetFile(hosts[0].subnetFile);
  expect({ mtu, network, ipv6Network }).toEqual({
    mtu: 1_452,
    network: undefined,
    ipv6Network: "fd00:10:244::/48",
  });
  expect((await readStatus(hosts[0])).findings).toEqual([]);
}

/** Until a pod reaches an address. */
export async function untilReached(from: Pod, address: string): Promise<void> {
  await until(async () => (await ping(from, address, { count: 1, deadline: 500 })).received === 1, {
    message: () => `${address} is not reached`,
    deadline: 20_000,
  });
}
