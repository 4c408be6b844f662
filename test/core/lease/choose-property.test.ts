import { expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import { isLegal } from "../../../core/lease/allocate.ts";
import { chooseLease } from "../../../core/lease/choose.ts";
import { relate } from "../../../core/lease/identity.ts";
import { prefixesOf } from "../../../core/lease/key.ts";
import type { LeaseAttrs, Subnets } from "../../../core/lease/lease.ts";
import type { SubnetRanges } from "../../../core/lease/store.ts";
import { overlaps } from "../../../core/net/prefix.ts";
import { range4, range6, stored } from "./arbitrary.ts";
import { cost } from "./cost.ts";

// Properties and timings are only slow on a machine that is busy with other suites.
setDefaultTimeout(30_000);

const machine = "aaaaaaaaaaaa";
const nodeId = `${machine}-111111111111`;
const otherId = "bbbbbbbbbbbb-222222222222";
const self: LeaseAttrs = { backendType: "vxlan", publicIP: "192.0.2.1", nodeId, bootId: "boot2" };

const owner: fc.Arbitrary<Partial<LeaseAttrs>> = fc.record(
  {
    publicIP: fc.constantFrom("192.0.2.1", "192.0.2.2", "192.0.2.3"),
    nodeId: fc.constantFrom(nodeId, otherId, `${machine}-999999999999`, "worker-1"),
    bootId: fc.constantFrom("boot1", "boot2"),
  },
  { requiredKeys: ["publicIP"] },
);
const subnets: fc.Arbitrary<Subnets> = fc
  .record({ block: fc.nat(12), length: fc.constantFrom(22, 23, 24, 24, 24, 25), six: fc.option(fc.nat(9)) })
  .map(({ block, length, six }) => ({
    ipv4: `10.3.${length < 24 ? block & ~3 : block}.0/${length}`,
    ...(six !== null && { ipv6: `fc00:0:0:${six}::/64` }),
  }));

test("property: whatever is in the store, the choice takes nothing from another node", () => {
  const scene = fc.record({
    entries: fc.uniqueArray(fc.record({ subnets, owner, reserved: fc.boolean() }), {
      selector: (entry) => JSON.stringify(entry.subnets),
      maxLength: 14,
    }),
    previous: fc.option(subnets, { nil: undefined }),
    ranges: fc.constantFrom<SubnetRanges>(
      { ipv4: range4({ subnetMax: "10.3.8.0" }) },
      { ipv4: range4({ subnetMax: "10.3.8.0" }), ipv6: range6({ subnetMax: "fc00:0:0:6::" }) },
    ),
  });
  const seen = new Set<string>();
  fc.assert(
    fc.property(scene, ({ entries, previous, ranges: given }) => {
      const leases = entries.map((entry) =>
        stored(entry.subnets, entry.owner, entry.reserved ? { leaseId: "0" } : {}),
      );
      const choice = chooseLease({ leases, self, ranges: given, ...(previous && { previous }) });
      seen.add(choice.plan.kind);
      for (const lease of choice.remove) {
        expect(["node-id", "public-ip", "new-interface"]).toContain(relate(lease.attrs, self));
        expect(lease.leaseId).not.toBe("0");
      }
      if (choice.plan.kind === "create") {
        const wanted = prefixesOf(choice.plan.subnets);
        expect(isLegal(choice.plan.subnets, given)).toBeUndefined();
        for (const lease of leases.filter((other) => !choice.remove.includes(other))) {
          expect(
            prefixesOf(lease.subnets).some((theirs) => wanted.some((ours) => overlaps(ours, theirs))),
          ).toBe(false);
        }
      }
      if (choice.plan.kind === "reuse") {
        expect(relate(choice.plan.lease.attrs, self)).not.toMatch(/other|clash/);
        expect(isLegal(choice.plan.lease.subnets, given)).toBeUndefined();
        expect(choice.remove).not.toContain(choice.plan.lease);
      }
      if (choice.plan.kind === "clash") expect(relate(choice.plan.holder.attrs, self)).toBe("clash");
    }),
    { numRuns: 2000 },
  );
  expect([...seen].sort()).toEqual(["clash", "create", "exhausted", "reuse"]);
});

test("20,000 leases: a choice costs about what reading them costs", () => {
  const wide = { ipv4: range4({ network: "10.0.0.0/8", subnetMin: "10.0.1.0", subnetMax: "10.255.255.0" }) };
  const leases = Array.from({ length: 20_000 }, (_, i) =>
    stored(
      { ipv4: `10.${i >> 8}.${i & 255}.0/24` },
      { publicIP: `172.16.${i >> 8}.${i & 255}`, nodeId: `n-${i}` },
    ),
  );
  const previous = { ipv4: "10.200.1.0/24" };
  const fresh = cost("choose a fresh one", () =>
    expect(chooseLease({ leases, self, ranges: wide }).plan).toMatchObject({ origin: "fresh" }),
  );
  const kept = cost("choose the previous", () =>
    expect(chooseLease({ leases, self, ranges: wide, previous }).plan).toMatchObject({ origin: "previous" }),
  );
  expect(fresh).toBeLessThan(6);
  expect(kept).toBeLessThan(6);
});
