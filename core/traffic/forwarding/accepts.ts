import { containsPrefix, parsePrefix } from "../../net/prefix.ts";
import type { AcceptingChains } from "./chain.ts";

/** Chains in a row that are followed; nf_tables allows 16 (NFT_JUMP_STACK_SIZE, net/netfilter/nf_tables.h). */
const DEEPEST = 16;

/**
 * Whether the rules of `chain` accept all packets from a network and all packets to it (CIDR text). Pure. Only rules
 * without a condition on anything but addresses are looked at: whoever accepts by interface or connection state alone
 * is not seen to, so that "no" is a well-founded suspicion and "yes" is certain but for rules that drop before.
 */
export function acceptsBothWays(chains: AcceptingChains, chain: string, network: string): boolean {
  return accepts(chains, chain, "source", network, 0) && accepts(chains, chain, "destination", network, 0);
}

function accepts(
  chains: AcceptingChains,
  chain: string,
  end: "source" | "destination",
  network: string,
  depth: number,
): boolean {
  if (depth > DEEPEST) return false;
  const other = end === "source" ? "destination" : "source";
  return (chains.get(chain) ?? []).some((rule) => {
    if (rule[other] !== undefined || !covers(rule[end], network)) return false;
    return rule.to === undefined || accepts(chains, rule.to, end, network, depth + 1);
  });
}

function covers(wide: string | undefined, network: string): boolean {
  if (wide === undefined) return true;
  const [outer, inner] = [parsePrefix(wide), parsePrefix(network)];
  return outer !== undefined && inner !== undefined && containsPrefix(outer, inner);
}
