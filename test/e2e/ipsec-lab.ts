import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Cluster, type NetworkConfig, networkConfig } from "../lab/cluster.ts";
import { type Daemon, type DaemonOptions, executable } from "../lab/daemon.ts";
import type { Host } from "../lab/host.ts";
import { ping } from "../lab/ping.ts";
import type { Pod } from "../lab/pod.ts";
import { readSubnetFile } from "../lab/subnet-file.ts";
import { Switch } from "../lab/switch.ts";
import { until } from "../lab/until.ts";

/** The key of the tests; no daemon, and nothing it starts, may ever write it anywhere. */
export const PSK = `${"5ec4e7".repeat(16)}-tail`;

/** Who moves the packets: the kernel's ESP, or charon's own where the kernel has none. */
export type Mover = "kernel" | "charon";

/**
 * strongSwan without what an operator would configure; only what it needs to be quick. Packets that meet a far end that
 * is not up yet are sent again soon.
 */
function strongswanConf(mover: Mover): string {
  const plugins = [
    "random nonce aes gcm sha1 sha2 hmac kdf gmp openssl socket-default vici",
    ...(mover === "charon" ? ["kernel-libipsec"] : []),
    "kernel-netlink",
  ];
  return `charon {\n  load = ${plugins.join(" ")}\n  install_virtual_ip = no\n  retransmit_timeout = 1\n}\n`;
}

/** The folder that is `/run` to the daemon of a host: charon's socket and process id belong to a machine. */
export function runFolder(host: Host): string {
  const folder = join(host.directory, "run");
  mkdirSync(folder, { recursive: true });
  return folder;
}

/** How a daemon is started that keeps its charon to its host. */
export function daemonOptions(host: Host, mover: Mover): DaemonOptions {
  const conf = join(host.directory, "strongswan.conf");
  writeFileSync(conf, strongswanConf(mover));
  const file = join(host.directory, "flanneld");
  writeFileSync(file, `#!/bin/sh\nmount --bind ${runFolder(host)} /run && exec ${executable()} "$@"\n`);
  chmodSync(file, 0o755);
  return { file, env: { STRONGSWAN_CONF: conf } };
}

/** A network config of this backend; `raw` are further options. */
export function ipsecConfig(raw: Readonly<Record<string, unknown>> = {}): NetworkConfig {
  return networkConfig("v4", { Type: "ipsec", PSK, ...raw });
}

/** What a host's charon says of its tunnels (`swanctl --list-sas`), or of its connections (`--list-conns`). */
export async function showAssociations(host: Host, list: "sas" | "conns" = "sas"): Promise<string> {
  const { stdout } = await host.namespace.run([
    "sh",
    "-ec",
    `mount --bind ${runFolder(host)} /run; swanctl --list-${list}`,
  ]);
  return stdout;
}

/** A cluster with pods that talk. */
export class IpsecCluster implements AsyncDisposable {
  readonly cluster: Cluster;
  readonly #mover: Mover;
  readonly daemons: Daemon[] = [];

  private constructor(cluster: Cluster, mover: Mover) {
    this.cluster = cluster;
    this.#mover = mover;
  }

  static async create(mover: Mover, hosts: number, raw: Readonly<Record<string, unknown>> = {}) {
    const cluster = await Cluster.create({ hosts, config: ipsecConfig(raw) });
    return new IpsecCluster(cluster, mover);
  }

  get hosts(): readonly Host[] {
    return this.cluster.hosts;
  }

  get pods(): readonly Pod[] {
    return this.cluster.pods;
  }

  /** Starts the daemon of a host, again after it ended. */
  start(host: Host, options: DaemonOptions = {}): Daemon {
    const usual = daemonOptions(host, this.#mover);
    const daemon = this.cluster.startDaemon(host, {
      ...usual,
      ...options,
      env: { ...usual.env, ...options.env },
    });
    this.daemons.push(daemon);
    return daemon;
  }

  /** Daemons on all hosts, and a pod on each. */
  async bringUp(): Promise<void> {
    await Promise.all(this.hosts.map((host) => this.start(host).ready));
    await this.cluster.addPods();
  }

  /** See {@link showAssociations}. */
  associations(host: Host): Promise<string> {
    return showAssociations(host);
  }

  /** What a host's charon was told of other hosts, and its tunnels. */
  async connections(host: Host): Promise<string> {
    return (await showAssociations(host, "conns")) + (await showAssociations(host));
  }

  /** Numbers of a host's IKE_SAs: no two have the same while charon lives. */
  async ikeNumbers(host: Host): Promise<readonly number[]> {
    const text = await this.associations(host);
    return [...text.matchAll(/^\S+: #(\d+), ESTABLISHED/gm)].map(([, number]) => Number(number)).sort();
  }

  /** Waits until the pods of two hosts reach each other. */
  async untilPing(from: number, to: number, deadline = 20_000): Promise<void> {
    const [a, b] = [this.pods[from] as Pod, this.pods[to] as Pod];
    await until(async () => (await ping(a, b.ipv4, { count: 1 })).received === 1, {
      message: async () =>
        `pod ${from + 1} does not reach pod ${to + 1}\n${this.daemons.map((d) => d.tail(100)).join("\n-----\n")}\n${await this.associations(a.host)}`,
      deadline,
    });
  }

  /** `/proc/PID` of a host's charon; undefined while there is none. */
  async charonPid(host: Host): Promise<number | undefined> {
    const { stdout } = await host.namespace.run(["sh", "-c", `cat ${runFolder(host)}/charon.pid`]);
    return Number.parseInt(stdout, 10) || undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.cluster[Symbol.asyncDispose]();
  }
}

/** What has passed the switch since the count began. */
export interface Wire {
  /** Packets between pods in clear. */
  readonly clear: number;
  /** ESP, in UDP or not. */
  readonly encrypted: number;
}

const TABLE = "netdev wire";

/** Counts what passes the ports of the switch: there are no decrypted packets, as a host's own devices have. */
export async function countWire({ cluster }: IpsecCluster): Promise<() => Promise<Wire>> {
  const { namespace } = cluster.switch;
  const rules = cluster.hosts.flatMap((host) => {
    const chain = `${TABLE} ${Switch.port(host.number)}`;
    return [
      `add chain ${chain} { type filter hook ingress device ${Switch.port(host.number)} priority 0; }`,
      `add rule ${chain} ip saddr 10.244.0.0/16 counter name clear`,
      `add rule ${chain} ip protocol esp counter name encrypted`,
      `add rule ${chain} udp dport 4500 udp length > 60 counter name encrypted`,
    ];
  });
  const script = [
    `add table ${TABLE}`,
    `add counter ${TABLE} clear`,
    `add counter ${TABLE} encrypted`,
    ...rules,
  ];
  const { exitCode, stderr } = await namespace.run(["nft", "-f", "-"], { input: `${script.join("\n")}\n` });
  if (exitCode !== 0) throw new Error(stderr);
  return async () => {
    const text = await namespace.exec("nft", "list", "counters", "table", ...TABLE.split(" "));
    const count = (name: string) =>
      Number(new RegExp(`counter ${name} \\{\\s+packets (\\d+)`).exec(text)?.[1]);
    return { clear: count("clear"), encrypted: count("encrypted") };
  };
}

/** The MTU that containers get follows the interface, where charon moves the packets. */
export async function expectMtuFollows(host: Host): Promise<void> {
  for (const [mtu, expected] of [
    [1450, 1450 - 85],
    [1500, 1400],
  ] as const) {
    await host.namespace.ip(`link set ext0 mtu ${mtu}`);
    await until(async () => (await readSubnetFile(host.subnetFile)).mtu === expected, {
      message: `the subnet file never said ${expected} for an MTU of ${mtu}`,
      deadline: 10_000,
    });
  }
}
