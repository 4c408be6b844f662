import { describe, expect, test } from "bun:test";
import type { StoredLease } from "../../../core/lease/entry.ts";
import type { LeaseAttrs } from "../../../core/lease/lease.ts";
import { decideLoss, type OwnKeyView } from "../../../core/lease/loss.ts";
import { stored } from "./arbitrary.ts";

const nodeId = "aaaaaaaaaaaa-111111111111";
const attrs: LeaseAttrs = {
  backendType: "vxlan",
  publicIP: "192.0.2.1",
  nodeId,
  bootId: "boot2",
  backendData: { VNI: 1 },
};
const own = stored({ ipv4: "10.3.7.0/24" }, attrs);

function found(change: Partial<LeaseAttrs>, facts: Partial<StoredLease> = {}): StoredLease {
  return stored(own.subnets, { ...attrs, ...change }, facts);
}

function without(...names: (keyof LeaseAttrs)[]): StoredLease {
  const left = Object.fromEntries(
    Object.entries(attrs).filter(([name]) => !names.includes(name as keyof LeaseAttrs)),
  );
  return stored(own.subnets, left as Partial<LeaseAttrs>);
}

function decide(view: Partial<OwnKeyView>) {
  return decideLoss({ lease: own, found: undefined, entries: [], ...view });
}

describe("the key is there", () => {
  test("as we wrote it, or rewritten alike: its revision and etcd lease are taken over", () => {
    const same = found({});
    expect(decide({ found: same })).toEqual({ action: "keep", found: same, reservation: false });
  });

  test("put without a lease by an operator: a reservation from now on", () => {
    const reserved = found({}, { leaseId: "0" });
    expect(decide({ found: reserved })).toEqual({ action: "keep", found: reserved, reservation: true });
    const byHand = stored(own.subnets, { publicIP: "192.0.2.1" }, { leaseId: "0" });
    expect(decide({ found: byHand })).toEqual({ action: "rewrite", found: byHand, reservation: true });
  });

  test.each([
    ["upstream's renewal: no id, our address", without("nodeId", "bootId")],
    ["by hand: our id and address, no boot", without("bootId", "backendData")],
    [
      "our machine's earlier boot under another interface",
      found({ nodeId: "aaaaaaaaaaaa-999999999999", bootId: "boot1" }),
    ],
  ])("%s: rewritten", (_, other) => {
    expect(decide({ found: other })).toEqual({ action: "rewrite", found: other, reservation: false });
  });

  test("an older write of ours: known by its revision, or as a write whose outcome was unknown", () => {
    const old = found({ backendData: { VNI: 2 } });
    expect(decide({ found: { ...old, modRevision: own.modRevision } })).toMatchObject({ action: "rewrite" });
    expect(decide({ found: old, doubtful: [{ ...attrs, backendData: { VNI: 2 } }] })).toMatchObject({
      action: "rewrite",
    });
    expect(decide({ found: old })).toMatchObject({
      action: "conflict",
      reason: expect.stringContaining("second daemon"),
    });
  });

  test.each([
    [
      "another node",
      found({ publicIP: "192.0.2.2", nodeId: "bbbbbbbbbbbb-222222222222" }),
      "another node wrote it",
    ],
    ["upstream's node", stored(own.subnets, { publicIP: "192.0.2.2" }), "another node wrote it"],
    ["our address, another id", found({ nodeId: "bbbbbbbbbbbb-222222222222" }), "our public address"],
    ["a cloned disk", found({ publicIP: "192.0.2.50", bootId: "boot9" }), "cloned disk"],
    [
      "our id with another address and no boot",
      stored(own.subnets, { publicIP: "192.0.2.50", nodeId }),
      "cloned disk",
    ],
    ["a cloned machine behind the same NAT address", found({ bootId: "boot9" }), "cloned disk"],
  ])("%s: a conflict that names the holder, nothing is written", (_, holder, reason) => {
    expect(decide({ found: holder })).toEqual({
      action: "conflict",
      holder,
      reason: expect.stringContaining(reason),
    });
  });

  test("a value nobody can read is a conflict too", () => {
    const bad = { key: own.key, reason: "the value is empty", subnets: own.subnets };
    expect(decide({ found: bad })).toEqual({
      action: "conflict",
      holder: { key: own.key, subnets: own.subnets, attrs: { backendType: "" } },
      reason: "the value is empty",
    });
  });
});

describe("the key is gone", () => {
  test("free: the same subnet is taken back", () => {
    const others = [
      stored({ ipv4: "10.3.8.0/24" }, { publicIP: "192.0.2.2" }),
      { key: ".lock", reason: "the key is not a subnet" },
    ];
    expect(decide({ entries: others })).toEqual({ action: "retake" });
  });

  test("the own entry in a list read a moment before does not count against us", () => {
    expect(decide({ entries: [own] })).toEqual({ action: "retake" });
  });

  test.each([
    ["a wider key", stored({ ipv4: "10.3.6.0/23" }, { publicIP: "192.0.2.2" })],
    ["a dual-stack sibling", stored({ ipv4: "10.3.7.0/24", ipv6: "fc00::/64" }, { publicIP: "192.0.2.2" })],
  ])("%s of somebody else overlaps it: a conflict", (_, holder) => {
    expect(decide({ entries: [own, holder] })).toEqual({
      action: "conflict",
      holder,
      reason: "its subnet overlaps ours",
    });
  });

  test("an unreadable key in our subnet keeps us from taking it", () => {
    const bad = { key: "10.3.7.0-25", reason: "the value is not JSON", subnets: { ipv4: "10.3.7.0/25" } };
    expect(decide({ entries: [bad] })).toMatchObject({ action: "conflict", holder: { key: bad.key } });
  });
});
