import type { Host } from "./host.ts";
import type { Namespace } from "./namespace.ts";
import { until } from "./until.ts";

/** A route nobody else makes, outside of every cluster network: seen in the monitor's output it proves it listens. */
const CANARY = "203.0.113.0/24";

/** States that neighbour entries take by themselves, as traffic goes. */
const PASSING = /STALE|REACHABLE|DELAY|PROBE|INCOMPLETE|FAILED/;

/** Records what changes of the daemon's objects on a host, with `ip monitor`. */
export class KernelMonitor implements AsyncDisposable {
  readonly #child: ReturnType<Namespace["spawn"]>;
  readonly #reading: Promise<void>;
  #text = "";

  private constructor(child: ReturnType<Namespace["spawn"]>) {
    this.#child = child;
    this.#reading = (async () => {
      const decoder = new TextDecoder();
      for await (const chunk of child.stdout) this.#text += decoder.decode(chunk, { stream: true });
    })();
  }

  /** Resolves when changes are seen. */
  static async start({ namespace }: Host): Promise<KernelMonitor> {
    const objects = ["link", "address", "route", "neigh", "nexthop"];
    const monitor = new KernelMonitor(namespace.spawn("stdbuf", "-oL", "ip", "monitor", ...objects));
    const canary = `ip route add ${CANARY} dev ext0; ip route del ${CANARY} dev ext0`;
    await until(
      async () => {
        await namespace.exec("sh", "-c", canary);
        return monitor.#text.includes(CANARY);
      },
      { message: "ip monitor shows what happens" },
    );
    return monitor;
  }

  /** Ends it; the lines about devices, addresses, entries and routes of ours. */
  async stop(): Promise<readonly string[]> {
    if (this.#child.exitCode === null) this.#child.kill("SIGTERM");
    await this.#child.exited;
    await this.#reading;
    return this.#text
      .split("\n")
      .filter((line) => /flannel|proto 140/.test(line) && !PASSING.test(line) && !line.includes(CANARY));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}
