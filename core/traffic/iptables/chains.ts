import type { FamilyRules } from "../rules.ts";

/** A chain of ours and the one base chain that jumps to it. */
export interface OwnChain {
  readonly name: string;
  readonly table: "nat" | "filter";
  readonly base: string;
  readonly rules: keyof Omit<FamilyRules, "family">;
  /** Comment on each of its rules and on the jump. */
  readonly comment: string;
}

/** Our chains, named and commented as upstream does. */
export const OWN_CHAINS: readonly OwnChain[] = [
  {
    name: "FLANNEL-POSTRTG",
    table: "nat",
    base: "POSTROUTING",
    rules: "masquerade",
    comment: "flanneld masq",
  },
  { name: "FLANNEL-FWD", table: "filter", base: "FORWARD", rules: "forward", comment: "flanneld forward" },
];
