import { Daemon, type DaemonOptions } from "./daemon.ts";
import type { EtcdServer } from "./etcd.ts";
import { Host } from "./host.ts";
import { Pod } from "./pod.ts";
import type { Family } from "./segment.ts";
import { Switch } from "./switch.ts";
import { endpointFor, startEtcdOn } from "./switch-etcd.ts";

/** The network config document; keys as documented. */
export interface NetworkConfig {
  readonly [key: string]: unknown;
  readonly Backend?: { readonly [key: string]: unknown };
}

export interface ClusterOptions {
  /** Number of hosts, 1–99; default 2. */
  readonly hosts?: number;
  /** Families of the underlay; default v4. The overlay's families follow from the config. */
  readonly family?: Family;
  /** Default: {@link networkConfig} of the family with vxlan. `null` leaves etcd empty. */
  readonly config?: NetworkConfig | null;
  /** Outlive this process: see {@link Daemon} and {@link EtcdServer}. */
  readonly detached?: boolean;
}

/** etcd prefix of the lab, upstream's default. */
export const PREFIX = "/coreos.com/network";

/**
 * A config as an operator would write it: 10.244.0.0/16 and, for dual stack, fd00:10:244::/48. A v6-only underlay
 * still has IPv4 subnets switched off.
 */
export function operatorConfig(
  family: Family,
  backend: { readonly [key: string]: unknown } = { Type: "vxlan" },
): NetworkConfig {
  return {
    ...(family === "v6" ? { EnableIPv4: false } : { Network: "10.244.0.0/16" }),
    ...(family === "v4" ? {} : { EnableIPv6: true, IPv6Network: "fd00:10:244::/48" }),
    Backend: backend,
  };
}

/** The third byte of the first and of the last IPv4 subnet that {@link networkConfig} lets daemons have. */
export const DAEMON_SUBNETS = { first: 128, last: 191 } as const;

/**
 * {@link operatorConfig}, but daemons have their subnets from the third quarter of the network (10.244.128.0 to
 * 10.244.191.0, fd00:10:244:8000:: to fd00:10:244:bfff::) only: those that a test makes up lie below or above it and
 * never meet a daemon's.
 */
export function networkConfig(
  family: Family,
  backend: { readonly [key: string]: unknown } = { Type: "vxlan" },
): NetworkConfig {
  const { first, last } = DAEMON_SUBNETS;
  const v4 = { SubnetMin: `10.244.${first}.0`, SubnetMax: `10.244.${last}.0` };
  const v6 = { IPv6SubnetMin: "fd00:10:244:8000::", IPv6SubnetMax: "fd00:10:244:bfff::" };
  return {
    ...operatorConfig(family, backend),
    ...(family === "v6" ? {} : v4),
    ...(family === "v4" ? {} : v6),
  };
}

/** Base address of the daemons' IPv4 subnet `n`, from 0: for a test that chooses a daemon's subnet itself. */
export function daemonSubnet(n: number): string {
  const { first, last } = DAEMON_SUBNETS;
  if (n < 0 || first + n > last) throw new Error(`daemons have ${last - first + 1} subnets, not number ${n}`);
  return `10.244.${first + n}.0`;
}

/**
 * The usual topology: one switch with etcd on it and some hosts; daemons and pods are added as the test goes.
 *
 * ```
 *   h1 ── ext0 ─┐            ┌─ ext0 ── h2
 *   cni0        ├── switch ──┤        cni0
 *   pod         │   (etcd)   │         pod
 * ```
 */
export class Cluster implements AsyncDisposable {
  readonly switch: Switch;
  readonly etcd: EtcdServer;
  readonly hosts: Host[] = [];
  readonly daemons: Daemon[] = [];
  readonly pods: Pod[] = [];
  readonly #detached: boolean;
  readonly #stack = new AsyncDisposableStack();

  private constructor(on: Switch, etcd: EtcdServer, detached: boolean) {
    this.switch = on;
    this.etcd = etcd;
    this.#detached = detached;
  }

  /** Lays out the switch, etcd (with the config written) and the hosts. No daemon runs yet. */
  static async create(options: ClusterOptions = {}): Promise<Cluster> {
    const { hosts = 2, family = "v4", detached = false } = options;
    const { config = networkConfig(family) } = options;
    await using stack = new AsyncDisposableStack();
    const on = stack.use(await Switch.create({ family }));
    const etcd = stack.use(await startEtcdOn(on, { detached }));
    const cluster = new Cluster(on, etcd, detached);
    if (config !== null) await cluster.configure(config);
    cluster.#stack.use(stack.move());
    try {
      for (let n = 1; n <= hosts; n++) await cluster.addHost(n);
    } catch (error) {
      await cluster[Symbol.asyncDispose]();
      throw error;
    }
    return cluster;
  }

  /** Writes the network config. */
  async configure(config: NetworkConfig): Promise<void> {
    await this.etcd.ctl("put", `${PREFIX}/config`, JSON.stringify(config));
  }

  /** Adds host `number`, disposed with the cluster. */
  async addHost(number: number, on: Switch = this.switch): Promise<Host> {
    const host = this.#stack.use(await Host.create(on, number));
    this.hosts.push(host);
    return host;
  }

  /** Starts a daemon on a host, disposed with the cluster; it is not awaited. */
  startDaemon(host: Host, options: DaemonOptions = {}): Daemon {
    const daemon = this.#stack.use(
      Daemon.start(host, { endpoints: endpointFor(host, this.switch), detached: this.#detached, ...options }),
    );
    this.daemons.push(daemon);
    return daemon;
  }

  /** Starts a daemon on every host and waits until all are ready. */
  async startDaemons(options: DaemonOptions = {}): Promise<readonly Daemon[]> {
    const started = this.hosts.map((host) => this.startDaemon(host, options));
    await Promise.all(started.map((daemon) => daemon.ready));
    return started;
  }

  /** Wires a pod from the host's subnet file, disposed with the cluster. */
  async addPod(host: Host, number = 1): Promise<Pod> {
    const pod = this.#stack.use(await Pod.create(host, { number }));
    this.pods.push(pod);
    return pod;
  }

  /** One pod on every host. */
  async addPods(): Promise<readonly Pod[]> {
    const added: Pod[] = [];
    for (const host of this.hosts) added.push(await this.addPod(host));
    return added;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}
