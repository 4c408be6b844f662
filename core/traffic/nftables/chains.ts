import type { Family } from "../intent.ts";
import type { FamilyRules } from "../rules.ts";

/** A base chain of ours. */
export interface BaseChain {
  readonly name: string;
  readonly rules: keyof Omit<FamilyRules, "family">;
  readonly type: "nat" | "filter";
  readonly hook: "postrouting" | "forward";
  /** NF_IP_PRI_NAT_SRC and NF_IP_PRI_FILTER (linux/netfilter_ipv4.h; the same for IPv6), as every nft reads them. */
  readonly priority: number;
}

/** Our chains, named as upstream names them. */
export const CHAINS: readonly BaseChain[] = [
  { name: "postrtg", rules: "masquerade", type: "nat", hook: "postrouting", priority: 100 },
  { name: "forward", rules: "forward", type: "filter", hook: "forward", priority: 0 },
];

/** nf_tables' name of a family. */
export function familyName(family: Family): "ip" | "ip6" {
  return family === 4 ? "ip" : "ip6";
}

/** Our table of a family, named as upstream names it. It is wholly ours. */
export function tableName(family: Family): string {
  return `flannel-ipv${family}`;
}
