import { type Cluster, networkConfig } from "../../lab/cluster.ts";
import type { Daemon } from "../../lab/daemon.ts";
import type { Host } from "../../lab/host.ts";
import { POD_BRIDGE, Pod } from "../../lab/pod.ts";
import type { BackendCase } from "./backends.ts";

/**
 * A backend at work on a cluster of three hosts, of which the third joins later. One cluster may serve backend after
 * backend.
 */
export class Overlay implements AsyncDisposable {
  readonly backend: BackendCase;
  readonly cluster: Cluster;
  /** One for each host that has joined. */
  readonly pods: Pod[] = [];
  readonly #daemons = new Map<Host, Daemon>();
  readonly #stack = new AsyncDisposableStack();

  private constructor(cluster: Cluster, backend: BackendCase) {
    this.cluster = cluster;
    this.backend = backend;
  }

  /** Configures the cluster and has the first two hosts join. */
  static async create(cluster: Cluster, backend: BackendCase): Promise<Overlay> {
    const overlay = new Overlay(cluster, backend);
    try {
      await cluster.configure(networkConfig(backend.family, backend.options));
      const [h1, h2] = overlay.hosts as [Host, Host];
      await Promise.all([overlay.start(h1), overlay.start(h2)]);
      for (const host of [h1, h2]) await overlay.#addPod(host);
      return overlay;
    } catch (error) {
      await overlay[Symbol.asyncDispose]();
      throw error;
    }
  }

  get hosts(): readonly Host[] {
    return this.cluster.hosts;
  }

  /** Has the third host join; its daemon gives its lease back when it stops. */
  async join(): Promise<void> {
    const [, , h3] = this.hosts as [Host, Host, Host];
    await this.start(h3, "--subnet-lease-release-on-stop");
    await this.#addPod(h3);
  }

  /** Starts the daemon of a host, again after it ended, and waits until it is ready. */
  async start(host: Host, ...flags: readonly string[]): Promise<void> {
    const daemon = this.cluster.startDaemon(host, { ...this.backend.daemon(host), flags });
    this.#daemons.set(host, daemon);
    await daemon.ready;
  }

  /** Ends the daemon of a host. */
  async stop(host: Host, signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
    await this.#daemons.get(host)?.stop(signal);
  }

  /** What the daemons said last, for messages. */
  tail(): string {
    return [...this.#daemons].map(([host, daemon]) => `${host.name}:\n${daemon.tail()}`).join("\n");
  }

  /** The bridge goes with the pod: the next backend may have another MTU. */
  async #addPod(host: Host): Promise<void> {
    this.#stack.defer(async () => void (await host.namespace.run(["ip", "link", "delete", POD_BRIDGE])));
    this.pods.push(this.#stack.use(await Pod.create(host)));
  }

  /** Ends daemons and pods. What the daemons made stays, as on any node that gets another backend. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.hosts.map((host) => this.stop(host)));
    await this.#stack.disposeAsync();
  }
}
