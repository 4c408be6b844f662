import { PREFIX } from "../lab/cluster.ts";
import { Daemon, type DaemonOptions } from "../lab/daemon.ts";
import type { EtcdServer } from "../lab/etcd.ts";
import { Host } from "../lab/host.ts";
import { kernelIn } from "../lab/in-namespace.ts";
import { readSubnetFile } from "../lab/subnet-file.ts";
import { Switch } from "../lab/switch.ts";
import { endpointFor, startEtcdOn } from "../lab/switch-etcd.ts";
import { until } from "../lab/until.ts";
import { fill, TXN_OPERATIONS } from "./leases.ts";
import { RouteCount } from "./route-count.ts";
import type { Subject } from "./scenario.ts";

/** Device that every flannel makes for VNI 1. */
export const DEVICE = "flannel.1";
/** Longest time a daemon gets to program everything, ms: generous, for the slow and for busy machines. */
const CONVERGENCE_MS = 120_000;

/**
 * An etcd with a number of peers in it, and hosts that come and go:
 *
 * ```
 *   host (fresh for each run) ── ext0 ── switch ── etcd: config, peers
 * ```
 */
export class Testbed implements AsyncDisposable {
  readonly switch: Switch;
  readonly etcd: EtcdServer;
  readonly peers: number;
  readonly #stack: AsyncDisposableStack;

  private constructor(on: Switch, etcd: EtcdServer, peers: number, stack: AsyncDisposableStack) {
    this.switch = on;
    this.etcd = etcd;
    this.peers = peers;
    this.#stack = stack;
  }

  /** Starts etcd and writes the peers. */
  static async create(peers: number): Promise<Testbed> {
    await using stack = new AsyncDisposableStack();
    const on = stack.use(await Switch.create({ family: "v4" }));
    const etcd = stack.use(await startEtcdOn(on, { args: ["--max-txn-ops", String(TXN_OPERATIONS)] }));
    await fill(etcd, peers);
    return new Testbed(on, etcd, peers, stack.move());
  }

  /** A fresh host, number 1 unless several are wanted. */
  async addHost(number = 1): Promise<BenchHost> {
    return new BenchHost(this, await Host.create(this.switch, number));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}

/** One run of a daemon, and when it was started. */
export interface Started {
  readonly daemon: Daemon;
  /** `performance.now()` just before the process was made. */
  readonly at: number;
}

/** A host for daemons, one after the other; its lease and its data plane go with it. */
export class BenchHost implements AsyncDisposable {
  readonly host: Host;
  readonly #testbed: Testbed;
  readonly #routes: RouteCount;
  readonly #before: number;
  readonly #daemons: Daemon[] = [];

  constructor(testbed: Testbed, host: Host) {
    this.host = host;
    this.#testbed = testbed;
    this.#routes = new RouteCount(host.namespace);
    this.#before = this.#routes.read();
  }

  /** Starts a daemon; nothing is awaited. */
  start(subject: Subject, options: DaemonOptions = {}): Started {
    const endpoints = endpointFor(this.host, this.#testbed.switch);
    const at = performance.now();
    const daemon = Daemon.start(this.host, { endpoints, file: subject.file, ...options });
    this.#daemons.push(daemon);
    return { daemon, at };
  }

  /** Resolves with `performance.now()` of the moment when there is a route to every peer. */
  async converged({ daemon }: Started): Promise<number> {
    const { peers } = this.#testbed;
    const describe = () => daemon.tail();
    return await this.#routes.reach(this.#before + peers, CONVERGENCE_MS, describe);
  }

  /** Makes sure that exactly the peers are programmed: routes, neighbours and forwarding entries. */
  async verify(): Promise<void> {
    const { peers } = this.#testbed;
    using kernel = kernelIn(this.host.namespace);
    const count = async () => ({
      routes: (await kernel.routes(4, { dev: DEVICE })).filter(({ dst }) => dst.endsWith("/24")).length,
      neighbours: (await kernel.neighbours(4, DEVICE)).filter(({ mac }) => mac?.startsWith("0a:58:")).length,
      forwarding: (await kernel.fdb(DEVICE)).filter(({ mac }) => mac.startsWith("0a:58:")).length,
    });
    await until(async () => Object.values(await count()).every((found) => found === peers), {
      message: async () => `not ${peers} of each: ${JSON.stringify(await count())}`,
      deadline: 30_000,
      interval: 250,
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#forgetLease();
    for (const daemon of this.#daemons) await daemon[Symbol.asyncDispose]();
    this.#routes[Symbol.dispose]();
    // Here and now: the kernel would take a namespace's devices apart later, in the middle of the next run.
    await this.host.namespace.run(["ip", "link", "delete", DEVICE]);
    const port = Switch.port(this.host.number);
    await this.#testbed.switch.namespace.run(["ip", "link", "delete", port]);
    await this.host[Symbol.asyncDispose]();
  }

  /** The next daemon finds the peers and nothing else. The daemon is ended first: it would take its lease back. */
  async #forgetLease(): Promise<void> {
    for (const daemon of this.#daemons) if (daemon.running) await daemon.kill();
    const subnet = await readSubnetFile(this.host.subnetFile).then(
      (file) => file.subnet,
      () => undefined,
    );
    if (subnet === undefined) return;
    const key = subnet.replace(/\.\d+\/(\d+)$/, ".0-$1");
    await this.#testbed.etcd.ctl("del", `${PREFIX}/subnets/${key}`);
  }
}
