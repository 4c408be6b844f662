import type { Health } from "../../observe/health.ts";
import type { TrafficHost } from "../host.ts";
import type { TrafficIntent } from "../intent.ts";
import { FORWARD_DENIED, forwardDeniedFinding } from "./finding.ts";
import { listDenials } from "./list.ts";

/**
 * Shows for as long as it is so that a chain of somebody else drops the packets of pods. Looks again only when the
 * generation of nf_tables has moved on since, so that a quiet host costs no process; iptables-legacy, whose changes
 * nothing tells, is looked at along with it.
 */
export class ForwardingWatch {
  readonly #host: TrafficHost;
  readonly #health: Health;
  #looked = "";
  #shown: ReadonlySet<string> = new Set();

  constructor(host: TrafficHost, health: Health) {
    this.#host = host;
    this.#health = health;
  }

  /** `anew`: look even where the generation cannot be read. Never throws; a look that fails shows nothing new. */
  async look(intent: TrafficIntent, anew: boolean): Promise<void> {
    const generation = this.#host.generation?.read();
    const signs = JSON.stringify([intent, generation]);
    if (signs === this.#looked && !(anew && generation === undefined)) return;
    if (generation === undefined && !anew) return;
    this.#looked = signs;
    if (!intent.forward) return this.#show(new Map());
    const networks = {
      ...(intent.ipv4 ? { 4: intent.ipv4.network } : {}),
      ...(intent.ipv6 ? { 6: intent.ipv6.network } : {}),
    };
    try {
      const denials = await listDenials(this.#host, networks);
      const denied = denials.filter(({ chain, networks: of }) => chain.hook === "forward" && of.length > 0);
      this.#show(
        new Map(denied.map((each) => [each.chain.name, forwardDeniedFinding(each, intent.kind)] as const)),
      );
    } catch {
      // Not installed any more, or hanging: those who set the rules tell it better, and the next change looks again.
      this.#looked = "";
    }
  }

  #show(findings: ReadonlyMap<string, ReturnType<typeof forwardDeniedFinding>>): void {
    for (const name of this.#shown) if (!findings.has(name)) this.#health.clear(FORWARD_DENIED, name);
    for (const [name, finding] of findings) this.#health.raise(finding, name);
    this.#shown = new Set(findings.keys());
  }
}
