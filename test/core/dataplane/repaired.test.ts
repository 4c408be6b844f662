import { expect, test } from "bun:test";
import { findRepaired } from "../../../core/dataplane/repaired.ts";
import type { BatchObject, KernelChange } from "../../../core/netlink/kernel.ts";

const route: BatchObject = { kind: "nexthop-route", dst: "10.5.2.0/24", nexthop: 7 };
const plain: BatchObject = { kind: "route", dst: "10.5.3.0/24", dev: "eth0", via: "192.0.2.3" };
const neighbour: BatchObject = {
  kind: "neighbour",
  dev: "flannel.1",
  ip: "10.5.2.0",
  mac: "02:00:00:00:00:02",
};
const stale: BatchObject = { kind: "fdb", dev: "flannel.1", mac: "02:00:00:00:00:09", dst: "192.0.2.9" };

const changes: readonly KernelChange[] = [
  { action: "put", object: route },
  { action: "put", object: plain },
  { action: "put", object: neighbour },
  { action: "delete", object: stale },
];

const owners: Readonly<Record<string, string>> = {
  "route 10.5.2.0/24 0": "two",
  "route 10.5.3.0/24 0": "three",
  "neighbour flannel.1 10.5.2.0": "two",
};

test("repairs are counted by kind, routes of both forms as one, with the peers they are of", () => {
  const result = { written: 3, removed: 1, changes, failures: [] };
  expect(findRepaired(result, (identity) => owners[identity])).toEqual({
    objects: { route: 2, neighbour: 1, fdb: 1 },
    owners: ["two", "three"],
  });
});

test("what the kernel refused is not repaired", () => {
  const failures = [
    { index: 1, change: changes[1]!, errno: 101, text: "ENETUNREACH: network is unreachable" },
  ];
  const result = { written: 3, removed: 1, changes, failures };
  expect(findRepaired(result, (identity) => owners[identity])).toEqual({
    objects: { route: 1, neighbour: 1, fdb: 1 },
    owners: ["two"],
  });
});
