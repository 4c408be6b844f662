import type { Others } from "./save.ts";
import type { Variant } from "./toolset.ts";

/**
 * The variant of iptables that rules must go to: the one that kube-proxy and Docker use, else the one with more rules
 * of others, else `otherwise`. Ours do not count, so that a choice does not confirm itself. Pure.
 */
export function chooseVariant(others: Readonly<Record<Variant, Others>>, otherwise: Variant): Variant {
  const { nft, legacy } = others;
  if (nft.leaders !== legacy.leaders) return nft.leaders ? "nft" : "legacy";
  if (nft.rules !== legacy.rules) return nft.rules > legacy.rules ? "nft" : "legacy";
  return otherwise;
}
