import { expect, setDefaultTimeout, test } from "bun:test";
import { decodeEntry, isBad, isReservation } from "../../../core/lease/entry.ts";
import { cost } from "./cost.ts";

// Properties and timings are only slow on a machine that is busy with other suites.
setDefaultTimeout(30_000);

const facts = { modRevision: 12, createRevision: 7, version: 3, leaseId: "7587888888888888888" };
const value =
  '{"PublicIP":"192.0.2.11","PublicIPv6":null,"BackendType":"vxlan","BackendData":{"VNI":1,"VtepMAC":"02:00:00:00:00:11"}}';

test("a key and its value become a lease that keeps what the store said", () => {
  expect(decodeEntry("172.25.95.0-24", value, facts)).toEqual({
    key: "172.25.95.0-24",
    subnets: { ipv4: "172.25.95.0/24" },
    attrs: {
      backendType: "vxlan",
      publicIP: "192.0.2.11",
      backendData: { VNI: 1, VtepMAC: "02:00:00:00:00:11" },
    },
    ...facts,
  });
});

test.each([
  [".lock", value, "not a subnet", undefined],
  ["10.244.9.0-33", value, "not a subnet", undefined],
  ["x10.244.9.0-24", value, "not a subnet", undefined],
  ["10.244.9.0-24", "", "empty", { ipv4: "10.244.9.0/24" }],
  ["10.244.9.0-24", "hello", "not JSON", { ipv4: "10.244.9.0/24" }],
  ["10.244.9.0-24", "{}", "no owner", { ipv4: "10.244.9.0/24" }],
])("entry %p is bad and says which subnet it occupies", (key, text, reason, subnets) => {
  const entry = decodeEntry(key, text, facts);
  if (!isBad(entry)) throw new Error("accepted");
  expect(entry.key).toBe(key);
  expect(entry.reason).toContain(reason);
  expect(entry.subnets).toEqual(subnets);
});

test("only a key without an etcd lease is a reservation", () => {
  expect(isReservation({ leaseId: "0" })).toBe(true);
  expect(isReservation(facts)).toBe(false);
});

test("20,000 entries are decoded in a few times what their JSON alone takes", () => {
  const entries = Array.from({ length: 20_000 }, (_, i) => ({
    key: `10.${i >> 8}.${i & 255}.0-24`,
    text: value.replace("192.0.2.11", `192.168.${i >> 8}.${i & 255}`),
  }));
  const ratio = cost("decode 20,000", () => {
    for (const { key, text } of entries) if (isBad(decodeEntry(key, text, facts))) throw new Error(key);
  });
  expect(ratio).toBeLessThan(12);
});
