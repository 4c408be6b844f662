import fc from "fast-check";
import type { StoredLease } from "../../../core/lease/entry.ts";
import { encodeKey } from "../../../core/lease/key.ts";
import type { LeaseAttrs, Subnets } from "../../../core/lease/lease.ts";
import type { SubnetRange } from "../../../core/lease/store.ts";
import { isIPv4Mapped } from "../../../core/net/ipv6.ts";
import { formatPrefix, prefix4, prefix6 } from "../../../core/net/prefix.ts";

/** Any IPv4 prefix a key can carry. */
export const anyPrefix4 = fc
  .tuple(fc.nat(0xffffffff), fc.nat(31))
  .map(([address, length]) => formatPrefix(prefix4(address, length)));

/** Any IPv6 prefix a key can carry. */
export const anyPrefix6 = fc
  .tuple(fc.bigInt({ min: 0n, max: 2n ** 128n - 1n }), fc.nat(127))
  .map(([address, length]) => prefix6(address, length))
  .filter((prefix) => !isIPv4Mapped(prefix.base))
  .map(formatPrefix);

/** IPv4, IPv6 or both. */
export const anySubnets: fc.Arbitrary<Subnets> = fc.oneof(
  fc.record({ ipv4: anyPrefix4 }),
  fc.record({ ipv6: anyPrefix6 }),
  fc.record({ ipv4: anyPrefix4, ipv6: anyPrefix6 }),
);

/** 10.3.1.0 to 10.3.255.0 in /24, or any part of it. */
export function range4(change: Partial<SubnetRange> = {}): SubnetRange {
  return {
    network: "10.3.0.0/16",
    subnetLen: 24,
    subnetMin: "10.3.1.0",
    subnetMax: "10.3.255.0",
    ...change,
  };
}

/** fc00:0:0:1:: to fc00:0:0:ffff:: in /64, or any part of it. */
export function range6(change: Partial<SubnetRange> = {}): SubnetRange {
  return {
    network: "fc00::/48",
    subnetLen: 64,
    subnetMin: "fc00:0:0:1::",
    subnetMax: "fc00:0:0:ffff::",
    ...change,
  };
}

let revision = 100;

/** A lease as the store holds it; each newer than the one before. */
export function stored(
  subnets: Subnets,
  attrs: Partial<LeaseAttrs>,
  facts: Partial<Omit<StoredLease, "attrs" | "subnets">> = {},
): StoredLease {
  revision += 1;
  return {
    key: encodeKey(subnets),
    subnets,
    attrs: { backendType: "vxlan", ...attrs },
    modRevision: revision,
    createRevision: revision,
    version: 1,
    leaseId: "7587870000000000001",
    ...facts,
  };
}
