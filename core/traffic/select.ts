import type { Finding } from "../observe/finding.ts";
import { fallbackFinding, noToolFinding } from "./findings.ts";
import type { Firewall } from "./firewall.ts";
import type { TrafficHost } from "./host.ts";
import type { Family, TrafficKind } from "./intent.ts";
import { IptablesFirewall } from "./iptables/firewall.ts";
import { findToolsets, servesFamily, type Toolset, type Variant } from "./iptables/toolset.ts";
import { chooseVariant } from "./iptables/variant.ts";
import { NftablesFirewall } from "./nftables/firewall.ts";

/** Where the rules of each family go. */
export interface Selection {
  readonly targets: ReadonlyMap<Family, Firewall>;
  /** What is not as the config wants it, with the family it is about. */
  readonly findings: readonly (readonly [Family, Finding])[];
}

/** One variant of iptables, ready to use. */
interface IptablesChoice {
  readonly tools: Toolset;
  readonly firewall: IptablesFirewall;
}

/** Chooses among the front ends that are installed; what a front end has learned of the host is kept. */
export class FirewallSelector {
  readonly #host: TrafficHost;
  readonly #nftables: NftablesFirewall;
  readonly #iptables = new Map<Variant, IptablesChoice>();
  #usual: Variant | undefined;
  #current: Variant | undefined;

  constructor(host: TrafficHost) {
    this.#host = host;
    this.#nftables = new NftablesFirewall(host.run);
  }

  /** Looks at what is installed and in use, and chooses for each of the families. */
  async select(kind: TrafficKind, families: readonly Family[]): Promise<Selection> {
    await this.discover();
    const targets = new Map<Family, Firewall>();
    const findings: (readonly [Family, Finding])[] = [];
    const nftables = this.#host.has("nft") ? this.#nftables : undefined;
    const usesIptables = kind === "iptables" || !nftables;
    const variant = usesIptables ? await this.#chooseVariant(families) : undefined;
    for (const family of families) {
      const iptables = this.#iptablesFor(family, variant);
      const [wanted, other] = kind === "nftables" ? [nftables, iptables] : [iptables, nftables];
      const target = wanted ?? other;
      if (!target) findings.push([family, noToolFinding(family)]);
      else {
        targets.set(family, target);
        if (!wanted) findings.push([family, fallbackFinding(family, kind, target.name)]);
      }
    }
    return { targets, findings };
  }

  /** Everything that is installed, as of the last look, and could hold rules of a family. */
  installed(family: Family): readonly Firewall[] {
    return [...(this.#host.has("nft") ? [this.#nftables] : []), ...this.#serving(family)];
  }

  /** Looks at what is installed. */
  async discover(): Promise<void> {
    const { installed, usual } = await findToolsets(this.#host.run, this.#host.has);
    this.#usual = usual;
    for (const tools of installed) {
      const known = this.#iptables.get(tools.variant);
      if (known?.tools.command === tools.command && known.tools.recent === tools.recent) continue;
      const firewall = new IptablesFirewall(this.#host.run, tools, this.#host.legacyTables);
      this.#iptables.set(tools.variant, { tools, firewall });
    }
  }

  /** One variant for all families: those who set the tone use the same for both. */
  async #chooseVariant([family]: readonly Family[]): Promise<Variant | undefined> {
    if (family === undefined) return undefined;
    const [nft, legacy] = [this.#choiceFor(family, "nft"), this.#choiceFor(family, "legacy")];
    if (!nft || !legacy) return (nft ?? legacy)?.tools.variant;
    const others = {
      nft: (await nft.firewall.read(family)).others,
      legacy: (await legacy.firewall.read(family)).others,
    };
    this.#current = chooseVariant(others, this.#current ?? this.#usual ?? "nft");
    return this.#current;
  }

  /** The chosen variant for a family, else any that serves it. */
  #iptablesFor(family: Family, variant: Variant | undefined): IptablesFirewall | undefined {
    const chosen = variant && this.#choiceFor(family, variant)?.firewall;
    return chosen ?? this.#serving(family)[0];
  }

  #serving(family: Family): IptablesFirewall[] {
    return (["nft", "legacy"] as const).flatMap(
      (variant) => this.#choiceFor(family, variant)?.firewall ?? [],
    );
  }

  #choiceFor(family: Family, variant: Variant): IptablesChoice | undefined {
    const choice = this.#iptables.get(variant);
    return choice && servesFamily(choice.tools, family, this.#host.has) ? choice : undefined;
  }
}
