import { expect, test } from "bun:test";
import { auditLeases } from "../../../core/lease/audit.ts";
import type { StoredLease } from "../../../core/lease/entry.ts";
import type { LeaseAttrs } from "../../../core/lease/lease.ts";
import { parseSubnets } from "../../../core/lease/subnet-text.ts";
import { range4 } from "./arbitrary.ts";

let revision = 10;

function lease(key: string, attrs: Partial<LeaseAttrs> = {}, leaseId = "7"): StoredLease {
  revision += 1;
  const facts = { modRevision: revision, createRevision: revision, version: 1, leaseId };
  return { key, subnets: parseSubnets(key) ?? {}, attrs: { backendType: "vxlan", ...attrs }, ...facts };
}

const RANGES = { ipv4: range4() };
const problemsOf = (leases: readonly StoredLease[], ranges: typeof RANGES | undefined = RANGES) =>
  Object.fromEntries(
    auditLeases({ leases, bad: [], times: new Map() }, ranges).map(({ key, problems }) => [
      key,
      problems.map(({ code }) => code),
    ]),
  );

test("a lease in order, a reservation and junk, in the order of their addresses", () => {
  const leases = [
    lease("10.3.10.0-24", { publicIP: "192.0.2.1", nodeId: "a" }),
    lease("10.3.9.0-24", { publicIP: "192.0.2.2" }, "0"),
    lease("10.3.8.0-24", { publicIP: "192.0.2.3" }, "9"),
  ];
  const bad = [{ key: ".lock", reason: "the key is not a subnet" }];
  const times = new Map([["7", { left: 50, granted: 60 }]]);
  const audited = auditLeases({ leases, bad, times }, RANGES);
  expect(audited.map(({ key }) => key)).toEqual([".lock", "10.3.8.0-24", "10.3.9.0-24", "10.3.10.0-24"]);
  const [junk, untold, reservation, told] = audited;
  expect(junk).toMatchObject({ kind: "junk", problems: [{ code: "junk", text: "the key is not a subnet" }] });
  expect(untold).toMatchObject({ kind: "lease", problems: [] });
  expect(untold).not.toHaveProperty("ttlSeconds");
  expect(reservation).toMatchObject({ kind: "reservation", problems: [] });
  expect(told).toMatchObject({ kind: "lease", ageSeconds: 10, ttlSeconds: 50, problems: [] });
});

test("an illegal lease is one only where the config is known", () => {
  const illegal = lease("10.9.1.0-24", { publicIP: "192.0.2.1" });
  expect(problemsOf([illegal])).toEqual({ "10.9.1.0-24": ["illegal"] });
  expect(auditLeases({ leases: [illegal], bad: [], times: new Map() }, undefined)[0]?.problems).toEqual([]);
});

test("of two that overlap the one that does not count is told", () => {
  const older = lease("10.3.4.0-24", { publicIP: "192.0.2.1" });
  const newer = lease("10.3.4.0-24&fd00::-64", { publicIP: "192.0.2.2" });
  const [, second] = auditLeases({ leases: [older, newer], bad: [], times: new Map() }, undefined);
  expect(problemsOf([older, newer])).toMatchObject({
    "10.3.4.0-24": [],
    "10.3.4.0-24&fd00::-64": ["illegal", "overlap"],
  });
  expect(second?.problems).toEqual([]);
});

test("an address or a node id in several leases", () => {
  const leases = [
    lease("10.3.1.0-24", { publicIP: "192.0.2.1", nodeId: "a" }),
    lease("10.3.2.0-24", { publicIP: "192.0.2.1", nodeId: "b" }),
    lease("10.3.3.0-24", { publicIP: "192.0.2.3", nodeId: "b" }),
  ];
  expect(problemsOf(leases)).toEqual({
    "10.3.1.0-24": ["address-shared"],
    "10.3.2.0-24": ["id-shared", "address-shared"],
    "10.3.3.0-24": ["id-shared"],
  });
});
