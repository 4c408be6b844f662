import fc from "fast-check";
import { formatIPv4 } from "../../../core/net/ipv4.ts";
import { formatIPv6 } from "../../../core/net/ipv6.ts";
import { canonicalPrefix } from "../../../core/net/prefix.ts";
import type { Family, FamilyIntent, TrafficIntent } from "../../../core/traffic/intent.ts";

/** CIDR text with host bits, of lengths the config allows (and 0, for excludes). */
function cidr(family: Family, least: number): fc.Arbitrary<string> {
  if (family === 4) {
    return fc
      .tuple(fc.integer({ min: 0, max: 2 ** 32 - 1 }), fc.integer({ min: least, max: 32 }))
      .map(([address, length]) => `${formatIPv4(address)}/${length}`);
  }
  return fc
    .tuple(fc.bigInt({ min: 0n, max: (1n << 128n) - 1n }), fc.integer({ min: least, max: 128 }))
    .map(([address, length]) => `${formatIPv6(address)}/${length}`);
}

/** Any intent for one family, host bits and all. */
export function anyFamily(family: Family): fc.Arbitrary<FamilyIntent> {
  return fc.record({
    network: cidr(family, 1),
    subnet: cidr(family, 1),
    masqExclude: fc
      .array(cidr(family, 0), { maxLength: 4 })
      .map((list) => [...new Set(list.flatMap((text) => canonicalPrefix(text) ?? []))]),
  });
}

/** Which rules are on. */
export const anySwitches: fc.Arbitrary<TrafficIntent> = fc.record({
  kind: fc.constantFrom("iptables", "nftables"),
  masquerade: fc.boolean(),
  forward: fc.boolean(),
  fullyRandom: fc.boolean(),
});
