import { expect } from "bun:test";
import { Cluster, networkConfig } from "../../lab/cluster.ts";
import type { Daemon, DaemonOptions } from "../../lab/daemon.ts";
import type { Host } from "../../lab/host.ts";
import { ping } from "../../lab/ping.ts";
import type { Pod } from "../../lab/pod.ts";
import { readSubnetFile } from "../../lab/subnet-file.ts";
import { endpointFor } from "../../lab/switch-etcd.ts";
import { until } from "../../lab/until.ts";
import { daemonOptions, type Mover } from "../ipsec-lab.ts";
import { keyFile } from "../wireguard-lab.ts";
import { hostState } from "./host-state.ts";
import { BACKENDS, TRACES, type Type, tracesOfOthers } from "./traces.ts";

/** What a walk is to be like. */
export interface WalkOptions {
  /** Who moves the packets of ipsec. */
  readonly mover: Mover;
  /**
   * Backends of which it is learned first what they make on a host on which nothing is. That is twice the work; of
   * others it is what is seen on their first turn, where nothing may tell of others.
   */
  readonly fresh?: readonly Type[];
}

/** Longest time of one ping, ms: tunnels come up meanwhile. */
const PING_MS = 300;

/** Two hosts with a pod each on which one backend follows another. */
export class BackendWalk implements AsyncDisposable {
  readonly #cluster: Cluster;
  readonly #options: ReadonlyMap<Host, DaemonOptions>;
  #daemons: readonly Daemon[] = [];
  /** What each host has with a backend, when nothing else is there. */
  readonly #fresh = new Map<Type, readonly (readonly string[])[]>();
  #subnets: readonly string[] = [];

  private constructor(cluster: Cluster, mover: Mover) {
    this.#cluster = cluster;
    this.#options = new Map(
      cluster.hosts.map((host) => {
        // A /run of its own: the sockets of charon and of WireGuard in user space lie there.
        const { env, ...options } = daemonOptions(host, mover);
        return [host, { ...options, env: { ...env, WIREGUARD_KEY_FILE: keyFile(host) } }];
      }),
    );
  }

  /** The hosts, without any daemon. */
  static async create({ mover, fresh = [] }: WalkOptions): Promise<BackendWalk> {
    const walk = new BackendWalk(await Cluster.create({ hosts: 2, config: null }), mover);
    try {
      const bare = await walk.#look();
      for (const type of fresh) {
        await walk.#start(type);
        await walk.#untilPods(type);
        walk.#fresh.set(type, await walk.#settled());
        await walk.#stop("SIGTERM");
        await Promise.all(walk.#cluster.hosts.map((host) => walk.#cleanUp(host)));
        await walk.#untilState(bare, "nothing is left");
      }
      return walk;
    } catch (error) {
      await walk[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Begins with a backend. */
  async begin(type: Type): Promise<void> {
    await this.#start(type);
    await this.#expect(type);
  }

  /** Ends the daemons that way and starts them with the other backend: all is as if there had been no other one. */
  async change(to: Type, signal: NodeJS.Signals): Promise<void> {
    await this.#stop(signal);
    await this.#start(to);
    await this.#expect(to);
  }

  async #start(type: Type): Promise<void> {
    await this.#cluster.configure(networkConfig("v4", { Type: type, ...BACKENDS[type] }));
    this.#daemons = this.#cluster.hosts.map((host) =>
      this.#cluster.startDaemon(host, { ...this.#options.get(host), flags: ["--ip-masq"] }),
    );
    await Promise.all(this.#daemons.map((daemon) => daemon.ready));
    if (this.#subnets.length > 0) return;
    await this.#cluster.addPods();
    this.#subnets = await this.#readSubnets();
  }

  async #stop(signal: NodeJS.Signals): Promise<void> {
    await Promise.all(this.#daemons.map((daemon) => daemon.stop(signal)));
  }

  async #expect(type: Type): Promise<void> {
    expect(await this.#readSubnets()).toEqual([...this.#subnets]);
    await this.#untilPods(type);
    const fresh = this.#fresh.get(type);
    if (fresh) await this.#untilState(fresh, `all is as after a first start with ${type}`);
    else this.#fresh.set(type, await this.#untilAlone(type));
  }

  /** Waits until each host is in that state. */
  async #untilState(wanted: readonly (readonly string[])[], what: string): Promise<void> {
    let now: readonly (readonly string[])[] = [];
    await until(
      async () => {
        now = await this.#look();
        return Bun.deepEquals(now, wanted);
      },
      { message: () => `${what}\n${differences(now, wanted).join("\n")}`, deadline: 5_000, interval: 200 },
    );
  }

  /** Waits until there is something of this backend, and nothing of others; resolves with the state. */
  async #untilAlone(type: Type): Promise<readonly (readonly string[])[]> {
    let now: readonly (readonly string[])[] = [];
    await until(
      async () => {
        now = await this.#look();
        return tracesOfOthers(now, type).length === 0;
      },
      {
        message: () => `nothing but ${type} is here\n${tracesOfOthers(now, type).join("\n")}`,
        deadline: 5_000,
        interval: 200,
      },
    );
    if (type !== "alloc")
      for (const state of now) expect(state.filter((line) => TRACES[type].test(line))).not.toBeEmpty();
    return now;
  }

  /** Until a packet has gone either way: what is made by the first packet is made by the side that sends it. */
  async #untilPods(type: Type): Promise<void> {
    if (type === "alloc") return;
    const [p1, p2] = this.#cluster.pods as [Pod, Pod];
    const reaches = async (from: Pod, to: Pod) =>
      (await ping(from, to.ipv4, { count: 1, deadline: PING_MS })).received === 1;
    await until(async () => (await reaches(p1, p2)) || (await reaches(p2, p1)), {
      message: () =>
        `pods reach each other by ${type}\n${this.#daemons.map((each) => each.tail()).join("\n")}`,
      deadline: 20_000,
    });
  }

  /** The state once it does not change any more. */
  async #settled(): Promise<readonly (readonly string[])[]> {
    let last = await this.#look();
    await until(
      async () => {
        const before = last;
        last = await this.#look();
        return Bun.deepEquals(before, last);
      },
      { message: "a state that lasts", interval: 200 },
    );
    return last;
  }

  #look(): Promise<(readonly string[])[]> {
    return Promise.all(this.#cluster.hosts.map(hostState));
  }

  #readSubnets(): Promise<string[]> {
    return Promise.all(
      this.#cluster.hosts.map(async (host) => (await readSubnetFile(host.subnetFile)).subnet ?? "none"),
    );
  }

  async #cleanUp(host: Host): Promise<void> {
    const { file = "", env } = this.#options.get(host) ?? {};
    const { stdout, stderr, exitCode } = await host.namespace.run(
      [
        file,
        "cleanup",
        `--subnet-file=${host.subnetFile}`,
        "--iface=ext0",
        `--etcd-endpoints=${endpointFor(host, this.#cluster.switch)}`,
      ],
      { env: { PATH: process.env.PATH ?? "", ...env } },
    );
    if (exitCode !== 0) throw new Error(`cleanup on ${host.name}: ${stdout}${stderr}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#cluster[Symbol.asyncDispose]();
  }
}

function differences(
  now: readonly (readonly string[])[],
  wanted: readonly (readonly string[])[],
): readonly string[] {
  return now.flatMap((seen, n) => [
    ...seen.filter((line) => !wanted[n]?.includes(line)).map((line) => `h${n + 1} has ${line}`),
    ...(wanted[n] ?? []).filter((line) => !seen.includes(line)).map((line) => `h${n + 1} lacks ${line}`),
  ]);
}
