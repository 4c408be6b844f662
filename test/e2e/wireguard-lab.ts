import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Cluster, type NetworkConfig, networkConfig } from "../lab/cluster.ts";
import { type Daemon, type DaemonOptions, executable } from "../lab/daemon.ts";
import { type Host, UNDERLAY } from "../lab/host.ts";
import { ping } from "../lab/ping.ts";
import type { Pod } from "../lab/pod.ts";
import { type Family, hasV4, hasV6, ROUTER_NUMBER } from "../lab/segment.ts";
import { until } from "../lab/until.ts";
import { Capture, expectEncrypted } from "./wireguard-capture.ts";

/** Where a host keeps its private key: the usual place would be the same file for all of them. */
export function keyFile(host: Host): string {
  return join(host.directory, "wgkey");
}

/** Folder of the sockets of WireGuard in user space on a host; on real hosts it is /var/run/wireguard. */
function socketFolder(host: Host): string {
  const folder = join(host.directory, "wireguard");
  mkdirSync(folder, { recursive: true });
  return folder;
}

/** Shell words that give a process the host's own socket folder in the usual place (in its own mount namespace). */
function inSocketFolder(host: Host): string {
  const usual = "/var/run/wireguard";
  return `mkdir -p ${usual} && mount --bind ${socketFolder(host)} ${usual} && exec`;
}

/** How a daemon is started that keeps key and sockets to its host, with `path` as its PATH where that is given. */
export function daemonOptions(host: Host, path?: string): DaemonOptions {
  const file = join(host.directory, "flanneld");
  const program = path === undefined ? executable() : `env PATH=${path} ${executable()}`;
  writeFileSync(file, `#!/bin/sh\n${inSocketFolder(host)} ${program} "$@"\n`);
  chmodSync(file, 0o755);
  return { file, env: { WIREGUARD_KEY_FILE: keyFile(host) } };
}

/** Runs a command of the executable, or any other, beside the daemon of a host. */
export async function runBeside(host: Host, ...command: readonly string[]) {
  return host.namespace.run([
    "sh",
    "-ec",
    `export WIREGUARD_KEY_FILE=${keyFile(host)}; ${inSocketFolder(host)} "$@"`,
    "sh",
    ...command,
  ]);
}

/** Starts a daemon on every host and waits until all are ready. */
export async function startDaemons(cluster: Cluster): Promise<readonly Daemon[]> {
  const daemons = cluster.hosts.map((host) => cluster.startDaemon(host, daemonOptions(host)));
  await Promise.all(daemons.map((daemon) => daemon.ready));
  return daemons;
}

/**
 * Lets a host believe that its default gateway answers: what takes the default route then leaves, and can be seen, in
 * place of waiting for an address that nobody has.
 */
export async function openDefaultRoute({ namespace, family, switch: { segment } }: Host): Promise<void> {
  const gateways = [
    ...(hasV4(family) ? [segment.ipv4(ROUTER_NUMBER)] : []),
    ...(hasV6(family) ? [segment.ipv6(ROUTER_NUMBER)] : []),
  ];
  for (const gateway of gateways) {
    await namespace.ip(`neighbour replace ${gateway} lladdr 02:00:00:00:00:fe nud permanent dev ${UNDERLAY}`);
  }
}

/** What a cluster is made of. */
export interface MeshOptions {
  readonly family?: Family;
  /** Number of hosts; default 2. */
  readonly hosts?: number;
  /** Options of the backend. */
  readonly options?: Readonly<Record<string, unknown>>;
}

/** A cluster of wireguard nodes with a pod each, all ready, watched from before the first daemon started. */
export class Mesh implements AsyncDisposable {
  readonly cluster: Cluster;
  readonly options: Readonly<Record<string, unknown>>;
  readonly pods: readonly Pod[];
  readonly #daemons: Daemon[];
  #captures: readonly Capture[] = [];

  private constructor(
    cluster: Cluster,
    options: Readonly<Record<string, unknown>>,
    daemons: readonly Daemon[],
    pods: readonly Pod[],
  ) {
    this.cluster = cluster;
    this.options = options;
    this.pods = pods;
    this.#daemons = [...daemons];
  }

  static async create({ family = "v4", hosts = 2, options = {} }: MeshOptions = {}): Promise<Mesh> {
    const config = networkConfig(family, { Type: "wireguard", ...options });
    const cluster = await Cluster.create({ hosts, family, config });
    try {
      for (const host of cluster.hosts) await openDefaultRoute(host);
      const captures = await Promise.all(cluster.hosts.map((host) => Capture.start(host)));
      const daemons = await startDaemons(cluster);
      const mesh = new Mesh(cluster, options, daemons, await cluster.addPods());
      mesh.#captures = captures;
      return mesh;
    } catch (error) {
      await cluster[Symbol.asyncDispose]();
      throw error;
    }
  }

  get hosts(): readonly Host[] {
    return this.cluster.hosts;
  }

  /** The n-th host, from 1. */
  host(n: number): Host {
    const host = this.hosts[n - 1];
    if (!host) throw new Error(`there is no host ${n}`);
    return host;
  }

  /** Ends the n-th daemon. */
  async stop(n: number, signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
    await this.#daemons[n - 1]?.stop(signal);
  }

  /** Starts the n-th daemon again, with what is in its place meanwhile. */
  async start(n: number): Promise<void> {
    const host = this.host(n);
    const daemon = this.cluster.startDaemon(host, daemonOptions(host));
    this.#daemons[n - 1] = daemon;
    await daemon.ready;
  }

  /** Gives all daemons another config; they are down meanwhile. */
  async restartWith(config: NetworkConfig): Promise<void> {
    await Promise.all(this.#daemons.map((daemon) => daemon.stop()));
    await this.cluster.configure(config);
    await Promise.all(this.hosts.map((_, at) => this.start(at + 1)));
  }

  /** Since the start, or the last question, nothing was on the wire in clear, and something was encrypted. */
  async expectEncrypted(): Promise<void> {
    const captures = this.#captures;
    this.#captures = await Promise.all(this.hosts.map((host) => Capture.start(host)));
    await expectEncrypted(captures);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const capture of this.#captures) await capture[Symbol.asyncDispose]();
    await this.cluster[Symbol.asyncDispose]();
  }
}

/** A peer as `wg show DEV dump` has it. */
export interface ShownPeer {
  readonly publicKey: string;
  readonly presharedKey: string;
  readonly endpoint: string;
  readonly allowedIPs: readonly string[];
  readonly keepalive: string;
}

/** `wg show DEV dump`, without the private key. */
export async function showDevice(
  host: Host,
  dev = "flannel-wg",
): Promise<{ readonly publicKey: string; readonly port: number; readonly peers: readonly ShownPeer[] }> {
  const { stdout, stderr } = await runBeside(host, "wg", "show", dev, "dump");
  const [device, ...peers] = stdout.trimEnd().split("\n");
  if (!device) throw new Error(`wg show ${dev} on ${host.name}: ${stderr}`);
  const [, publicKey = "", port = ""] = device.split("\t");
  return {
    publicKey,
    port: Number(port),
    peers: peers.sort().map((line) => {
      const [key = "", secret = "", endpoint = "", allowed = "", , , , keepalive = ""] = line.split("\t");
      return { publicKey: key, presharedKey: secret, endpoint, allowedIPs: allowed.split(","), keepalive };
    }),
  };
}

/** Waits until every host has exactly one peer for each other host. */
export async function expectMesh(cluster: Cluster, dev = "flannel-wg"): Promise<void> {
  await until(
    async () => {
      const shown = await Promise.all(cluster.hosts.map((host) => showDevice(host, dev)));
      const keys = shown.map(({ publicKey }) => publicKey);
      return shown.every(({ publicKey, peers }) => {
        const wanted = keys.filter((key) => key !== publicKey).sort();
        return (
          wanted.join() ===
          peers
            .map((peer) => peer.publicKey)
            .sort()
            .join()
        );
      });
    },
    { message: `${dev} of every host has all other hosts for peers`, interval: 200 },
  );
}

/** Every pod reaches every other one, at all its addresses. The first packets may have to wait for a handshake. */
export async function expectAllReach(pods: readonly Pod[]): Promise<void> {
  for (const from of pods) {
    for (const to of pods.filter((pod) => pod !== from)) {
      for (const address of to.addresses) {
        await until(async () => (await ping(from, address, { count: 1 })).received === 1, {
          message: `${from.host.name} reaches ${address} on ${to.host.name}`,
          deadline: 15_000,
        });
      }
    }
  }
}
