/** The smallest active backend that does real work: one route per peer and family, written by running `ip`. */
import {
  type ActiveBackend,
  type ConfigureInput,
  defineBackend,
  type Host,
  type HostFacts,
  type Peer,
  type SyncReport,
} from "flannel/sdk";
import * as v from "valibot";

const TYPE = "commands";
/** What the manifest promises. */
const OVERHEAD = 28;

const options = v.object({
  Protocol: v.optional(
    v.pipe(
      v.number("Protocol must be a number"),
      v.integer("Protocol must be a whole number"),
      v.minValue(5, "Protocol must be from 5 to 255"),
      v.maxValue(255, "Protocol must be from 5 to 255"),
    ),
    141,
  ),
});

type Options = v.InferOutput<typeof options>;

export default defineBackend<Options>({
  optionNames: ["Protocol"],
  options,
  configure: (input) => new Commands(input),
});

class Commands implements ActiveBackend {
  readonly mode = "active";
  readonly #protocol: string;
  #host: Host | undefined;

  constructor({ options: { Protocol } }: ConfigureInput<Options>) {
    this.#protocol = String(Protocol);
  }

  async prepare(host: Host, _facts: HostFacts) {
    this.#host = host;
    return { backendType: TYPE, ipv4: { Protocol: this.#protocol } };
  }

  async attach(_lease: unknown, facts: HostFacts) {
    return { mtu: facts.external.mtu - OVERHEAD };
  }

  /** Compares with what is there: the delta is not needed. */
  async sync(peers: readonly Peer[], _delta: unknown, facts: HostFacts): Promise<SyncReport> {
    const failed: { key: string; reason: string }[] = [];
    const stale = new Set(await this.#list());
    for (const peer of peers) {
      for (const family of [peer.ipv4, peer.ipv6]) {
        if (!family) continue;
        const route = `${family.subnet} via ${family.publicIP} dev ${facts.external.name}`;
        if (stale.delete(route)) continue;
        try {
          await this.#ip(["route", "replace", ...route.split(" "), "proto", this.#protocol]);
        } catch (error) {
          failed.push({ key: peer.key, reason: error instanceof Error ? error.message : String(error) });
        }
      }
    }
    for (const route of stale) await this.#ip(["route", "delete", ...route.split(" ")]);
    return { failed };
  }

  async stop(): Promise<void> {}

  async cleanup({ dryRun }: { readonly dryRun: boolean }): Promise<readonly string[]> {
    const routes = await this.#list();
    if (!dryRun) for (const route of routes) await this.#ip(["route", "delete", ...route.split(" ")]);
    return routes.map((route) => `route ${route}`);
  }

  async #list(): Promise<readonly string[]> {
    const lists = await Promise.all(
      ["-4", "-6"].map((family) => this.#ip([family, "route", "show", "proto", this.#protocol])),
    );
    return lists.flatMap((text) => text.match(/^\S+ via \S+ dev \S+/gm) ?? []);
  }

  async #ip(args: readonly string[]): Promise<string> {
    return (await this.#host?.run("ip", args))?.stdout ?? "";
  }
}
