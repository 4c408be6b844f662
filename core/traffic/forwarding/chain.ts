import type { Family } from "../intent.ts";

/** A base chain that drops what no rule accepts. */
export interface DroppingChain {
  readonly hook: "forward" | "input";
  /** For people: `ip filter FORWARD` or `iptables-legacy FORWARD`. */
  readonly name: string;
  /** Families whose packets pass it. */
  readonly families: readonly Family[];
  /** Where it is: a table of nf_tables, or iptables-legacy's filter table, with the chain's name. */
  readonly place: NftablesPlace | LegacyPlace;
}

/** A chain of nf_tables, those that iptables-nft keeps among them. */
export interface NftablesPlace {
  readonly kind: "nftables";
  readonly family: string;
  readonly table: string;
  readonly chain: string;
}

/** A chain of iptables-legacy. */
export interface LegacyPlace {
  readonly kind: "legacy";
  /** `iptables-legacy` or `ip6tables-legacy`. */
  readonly command: string;
  readonly chain: string;
}

/** A rule of anybody, as far as it accepts packets or hands them to a chain whatever else they are. */
export interface AcceptingRule {
  /** CIDR text; absent: any. */
  readonly source?: string;
  readonly destination?: string;
  /** Name of the chain it jumps or goes to; absent: it accepts. */
  readonly to?: string;
}

/** Rules by chain, in order; rules with further conditions are left out. */
export type AcceptingChains = ReadonlyMap<string, readonly AcceptingRule[]>;
