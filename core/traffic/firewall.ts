import type { Family } from "./intent.ts";
import type { FamilyRules } from "./rules.ts";

/** One place that can hold our rules: nf_tables' own tables, or the chains of one variant of iptables. */
export interface Firewall {
  /** For messages, e.g. `nftables` or `iptables-legacy`. */
  readonly name: string;
  /** Whether every change here, by anybody, moves the generation of nf_tables on. */
  readonly hasGeneration: boolean;

  /**
   * Reads what is there and, only when it differs, makes it so in one transaction. Returns what it did, in words;
   * empty when nothing was written. Throws Fault `TRAFFIC_LOCKED`, `TRAFFIC_REFUSED`, or what `run` throws.
   */
  reconcile(rules: FamilyRules): Promise<readonly string[]>;

  /** Removes all of ours of a family, or with `dryRun` only tells; idempotent. Returns what it removed, in words. */
  remove(family: Family, dryRun: boolean): Promise<readonly string[]>;
}
