import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { Peer, XfrmPolicyState } from "flannel/sdk";
import { planPolicies, policiesFor } from "../../../backends/ipsec/policies.ts";
import { isWithin } from "../../../backends/ipsec/prefix.ts";
import { planRoutes, routesFor } from "../../../backends/ipsec/routes.ts";
import { type FarEnd, findFarEnds } from "../../../backends/ipsec/tunnel.ts";
import { farEnd, isInNetwork, NETWORK, OWN } from "./ends.ts";

test("peers of another backend, or without IPv4, are named", () => {
  const peers: Peer[] = [
    { key: "a", backendType: "ipsec", ipv4: { subnet: "10.5.2.0/24", publicIP: "192.0.2.2" } },
    { key: "b", backendType: "vxlan", ipv4: { subnet: "10.5.3.0/24", publicIP: "192.0.2.3" } },
    { key: "c", backendType: "ipsec" },
  ];
  expect(findFarEnds(peers)).toEqual({
    ends: [{ ...farEnd(2), key: "a" }],
    unusable: [
      { key: "b", reason: 'uses backend "vxlan", this node uses "ipsec"' },
      { key: "c", reason: "has no IPv4 subnet" },
    ],
  });
});

test("prefixes: what lies in a network", () => {
  expect(isWithin("10.5.1.0/24", NETWORK)).toBe(true);
  expect(isWithin("10.5.0.0/16", NETWORK)).toBe(true);
  expect(isWithin("10.6.0.0/24", NETWORK)).toBe(false);
  expect(isWithin("10.0.0.0/8", NETWORK)).toBe(false);
  expect(isWithin("0.0.0.0/0", "0.0.0.0/0")).toBe(true);
  for (const bad of ["", "10.5.1.0", "10.5.1.0/33", "300.5.1.0/24", "fd00::/64"])
    expect(isWithin(bad, NETWORK)).toBe(false);
});

describe("policies", () => {
  const apply = (actual: readonly XfrmPolicyState[], fars: readonly FarEnd[]) => {
    const wanted = fars.flatMap((far) => policiesFor(OWN, far));
    const there = new Map(
      actual.map((policy) => [`${policy.direction} ${policy.src} ${policy.dst}`, policy]),
    );
    const changes = planPolicies(actual, wanted, isInNetwork);
    for (const change of changes) {
      if (!("policy" in change)) throw new Error("only policies");
      const { direction, src, dst } = change.policy;
      if (change.action === "put") there.set(`${direction} ${src} ${dst}`, change.policy);
      else expect(there.delete(`${direction} ${src} ${dst}`)).toBe(true);
    }
    return { after: [...there.values()], changes };
  };
  const foreign: XfrmPolicyState[] = [
    {
      src: "10.9.1.0/24",
      dst: "10.8.1.0/24",
      direction: "in",
      tunnel: { src: "1.1.1.1", dst: "192.0.2.1", reqid: 11 },
    },
    {
      src: "10.5.7.0/24",
      dst: "10.5.8.0/24",
      direction: "out",
      tunnel: { src: "1.1.1.1", dst: "1.1.1.2", reqid: 12 },
    },
    { src: "10.5.7.0/24", dst: "10.5.9.0/24", direction: "out" },
  ];

  test("out, in and forward, as upstream has them", () => {
    const back = { src: "192.0.2.2", dst: "192.0.2.1", reqid: 11 };
    expect(policiesFor(OWN, farEnd(2))).toEqual([
      {
        src: "10.5.1.0/24",
        dst: "10.5.2.0/24",
        direction: "out",
        tunnel: { src: "192.0.2.1", dst: "192.0.2.2", reqid: 11 },
      },
      { src: "10.5.2.0/24", dst: "10.5.1.0/24", direction: "in", tunnel: back },
      { src: "10.5.2.0/24", dst: "10.5.1.0/24", direction: "fwd", tunnel: back },
    ]);
  });

  test("from any state of ours to any other: exactly the wanted ones, others' untouched, then nothing to do", () => {
    const peers = fc.uniqueArray(fc.integer({ min: 2, max: 20 }), { maxLength: 8 });
    fc.assert(
      fc.property(peers, peers, fc.boolean(), (before, wanted, moved) => {
        const far = (n: number) => farEnd(n);
        const first = apply(foreign, before.map(far)).after;
        const elsewhere = moved
          ? first.map((policy) =>
              policy.tunnel?.reqid === 11 && isInNetwork(policy.src)
                ? { ...policy, tunnel: { ...policy.tunnel, dst: "203.0.113.1" } }
                : policy,
            )
          : first;
        const { after } = apply(elsewhere, wanted.map(far));
        const expected = [...foreign, ...wanted.flatMap((n) => policiesFor(OWN, far(n)))];
        const text = (policies: readonly XfrmPolicyState[]) =>
          policies.map((each) => JSON.stringify(each)).sort();
        expect(text(after)).toEqual(text(expected));
        expect(apply(after, wanted.map(far)).changes).toEqual([]);
      }),
    );
  });
});

test("routes: the wanted ones are put, stale ones of ours go, what is right stays", () => {
  const wanted = routesFor(NETWORK, "eth0", OWN, [farEnd(2), farEnd(3)]);
  expect(wanted).toEqual([
    { kind: "route", dst: NETWORK, dev: "", blackhole: true },
    { kind: "route", dst: "10.5.2.0/24", dev: "eth0", src: "10.5.1.0" },
    { kind: "route", dst: "10.5.3.0/24", dev: "eth0", src: "10.5.1.0" },
  ]);
  const actual = [
    { dst: NETWORK, type: 6 },
    { dst: "10.5.2.0/24", dev: "eth0", src: "10.5.1.0", type: 1 },
    { dst: "10.5.3.0/24", dev: "eth0", src: "10.5.99.0", type: 1 },
    { dst: "10.5.4.0/24", dev: "eth0", src: "10.5.1.0", type: 1 },
    { dst: "10.77.0.0/24", dev: "eth0", type: 1 },
  ];
  expect(planRoutes(actual, wanted, isInNetwork)).toEqual([
    { action: "put", object: { kind: "route", dst: "10.5.3.0/24", dev: "eth0", src: "10.5.1.0" } },
    { action: "delete", object: { kind: "route", dst: "10.5.4.0/24", dev: "eth0" } },
  ]);
  expect(planRoutes([], wanted, isInNetwork).length).toBe(3);
  // The guard of the wireguard backend is not the blackhole of this one, though it is for the same network.
  const guard = { dst: NETWORK, type: 6, metric: 4_278_198_272 };
  const blackhole = { kind: "route", dst: NETWORK, dev: "", blackhole: true };
  expect(planRoutes([guard], wanted.slice(0, 1), isInNetwork)).toEqual([
    { action: "put", object: blackhole },
    { action: "delete", object: { ...blackhole, metric: 4_278_198_272 } },
  ] as never);
});
