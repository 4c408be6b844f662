import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { isLegal } from "../../../core/lease/allocate.ts";
import { type Choice, type ChoiceRequest, chooseLease, findClash } from "../../../core/lease/choose.ts";
import type { StoredLease } from "../../../core/lease/entry.ts";
import type { LeaseAttrs, Subnets } from "../../../core/lease/lease.ts";
import type { SubnetRanges } from "../../../core/lease/store.ts";
import { range4, range6, stored } from "./arbitrary.ts";

// Properties and timings are only slow on a machine that is busy with other suites.
setDefaultTimeout(30_000);

const machine = "aaaaaaaaaaaa";
const nodeId = `${machine}-111111111111`;
const otherId = "bbbbbbbbbbbb-222222222222";
const self: LeaseAttrs = { backendType: "vxlan", publicIP: "192.0.2.1", nodeId, bootId: "boot2" };
const ranges: SubnetRanges = { ipv4: range4() };
const dual: SubnetRanges = { ipv4: range4(), ipv6: range6() };

function choose(leases: readonly StoredLease[], change: Partial<ChoiceRequest> = {}): Choice {
  return chooseLease({ leases, self, ranges, ...change });
}

function codes(choice: Choice): string[] {
  return choice.notes.map((note) => note.code);
}

function keys(leases: readonly StoredLease[]): string[] {
  return leases.map((lease) => lease.key);
}

const s = (block: number): Subnets => ({ ipv4: `10.3.${block}.0/24` });

describe("reuse", () => {
  test("by node id, also with another address: the node moved", () => {
    const own = stored(s(7), { publicIP: "192.0.2.99", nodeId, bootId: "boot1" });
    const choice = choose([stored(s(1), { publicIP: "192.0.2.2", nodeId: otherId }), own]);
    expect(choice).toEqual({ plan: { kind: "reuse", lease: own, origin: "node-id" }, remove: [], notes: [] });
  });

  test("by public IP where the key has no node id, as upstream writes it", () => {
    const own = stored(s(7), { publicIP: "192.0.2.1" });
    expect(choose([own]).plan).toEqual({ kind: "reuse", lease: own, origin: "public-ip" });
  });

  test("a node without IPv4 by its IPv6 address", () => {
    const own = stored({ ipv6: "fc00:0:0:5::/64" }, { publicIPv6: "fd00::1" });
    const self6: LeaseAttrs = { backendType: "vxlan", publicIPv6: "fd00::1", nodeId };
    const choice = choose([own], { self: self6, ranges: { ipv6: range6() } });
    expect(choice.plan).toEqual({ kind: "reuse", lease: own, origin: "public-ip" });
  });

  test("with IPv4, an equal IPv6 address alone does not make a lease ours", () => {
    const theirs = stored(s(7), { publicIP: "192.0.2.2", publicIPv6: "fd00::1" });
    expect(choose([theirs], { self: { ...self, publicIPv6: "fd00::1" } }).plan.kind).toBe("create");
  });

  test("the machine after a reboot with another interface", () => {
    const own = stored(s(7), { publicIP: "192.0.2.1", nodeId: `${machine}-999999999999`, bootId: "boot1" });
    expect(choose([own]).plan).toEqual({ kind: "reuse", lease: own, origin: "public-ip" });
  });

  test("a reservation, by id or by address", () => {
    for (const attrs of [{ nodeId }, { publicIP: "192.0.2.1" }]) {
      const own = stored(s(7), attrs, { leaseId: "0" });
      expect(choose([own]).plan).toEqual({ kind: "reuse", lease: own, origin: "reservation" });
    }
  });

  test("of several own keys the previous subnet stays; the others are removed if our id is in them", () => {
    const first = stored(s(1), { publicIP: "192.0.2.1", nodeId });
    const previous = stored(s(2), { publicIP: "192.0.2.1", nodeId });
    const upstream = stored(s(3), { publicIP: "192.0.2.1" });
    const choice = choose([first, previous, upstream], { previous: s(2) });
    expect(choice.plan).toMatchObject({ kind: "reuse", lease: previous });
    expect(keys(choice.remove)).toEqual(["10.3.1.0-24"]);
  });

  test("a key without our id is not removed beside the one in use, even where it does not fit the config", () => {
    const own = stored(s(1), { publicIP: "192.0.2.1", nodeId });
    const upstream = stored({ ipv4: "10.9.9.0/24" }, { publicIP: "192.0.2.1" });
    const former = stored({ ipv4: "10.9.8.0/24" }, { publicIP: "192.0.2.7", nodeId });
    const choice = choose([own, upstream, former]);
    expect(choice.plan).toMatchObject({ kind: "reuse", lease: own });
    expect(choice.remove).toEqual([former]);
  });

  test("without a previous subnet: reservation, id and address, id, address", () => {
    const byAddress = stored(s(1), { publicIP: "192.0.2.1" });
    const byId = stored(s(2), { publicIP: "192.0.2.9", nodeId, bootId: "boot2" });
    const byBoth = stored(s(3), { publicIP: "192.0.2.1", nodeId });
    const reserved = stored(s(4), { publicIP: "192.0.2.1" }, { leaseId: "0" });
    const all = [byAddress, byId, byBoth, reserved];
    const picked: string[] = [];
    while (all.length > 0) {
      const { plan } = choose(all);
      if (plan.kind !== "reuse") throw new Error(plan.kind);
      picked.push(plan.lease.key);
      all.splice(all.indexOf(plan.lease), 1);
    }
    expect(picked).toEqual(["10.3.4.0-24", "10.3.3.0-24", "10.3.2.0-24", "10.3.1.0-24"]);
  });

  test("a second key with our id but another address and boot may be a clone's: named, not removed", () => {
    const own = stored(s(1), { publicIP: "192.0.2.1", nodeId });
    const clone = stored(s(2), { publicIP: "192.0.2.50", nodeId, bootId: "boot9" });
    const choice = choose([own, clone]);
    expect(choice.plan).toMatchObject({ kind: "reuse", lease: own });
    expect(choice.remove).toEqual([]);
    expect(choice.notes[0]).toMatchObject({
      code: "LEASE_ID_SHARED",
      text: expect.stringContaining("192.0.2.50"),
    });
  });

  test("a reservation that is not taken is named and stays", () => {
    const own = stored(s(1), { publicIP: "192.0.2.1", nodeId });
    const reserved = stored(s(2), { nodeId }, { leaseId: "0" });
    const choice = choose([own, reserved], { previous: s(1) });
    expect(choice.plan).toMatchObject({ kind: "reuse", lease: own });
    expect(choice.remove).toEqual([]);
    expect(codes(choice)).toEqual(["LEASE_RESERVATION_UNUSED"]);
  });
});

describe("clash", () => {
  test("our address under another id is refused; both ids, the address and the key are named", () => {
    const holder = stored(s(7), { publicIP: "192.0.2.1", nodeId: otherId });
    const choice = choose([holder]);
    if (choice.plan.kind !== "clash") throw new Error(choice.plan.kind);
    expect(choice.remove).toEqual([]);
    const { fault } = choice.plan;
    expect(fault.code).toBe("LEASE_CLASH");
    for (const word of [nodeId, otherId, "192.0.2.1", "10.3.7.0-24"]) expect(fault.message).toContain(word);
    expect(fault.hint).toContain("subnets/10.3.7.0-24");
  });

  test.each([
    ["the same boot: two daemons or namespaces on one machine", `${machine}-999999999999`, "boot2"],
    ["no boot id: nothing proves a reboot", `${machine}-999999999999`, undefined],
    ["an id set by hand has no machine part", "worker-1", "boot1"],
  ])("%s", (_, id, bootId) => {
    const holder = stored(s(7), { publicIP: "192.0.2.1", nodeId: id, ...(bootId && { bootId }) });
    expect(choose([holder]).plan.kind).toBe("clash");
  });

  test("of two keys made at the same moment the first stays, on both nodes", () => {
    const mine = stored(s(1), { publicIP: "192.0.2.1", nodeId });
    const theirs = stored(s(2), { publicIP: "192.0.2.1", nodeId: otherId });
    const them: LeaseAttrs = { ...self, nodeId: otherId };
    expect(findClash([mine, theirs], self)).toBeUndefined();
    expect(findClash([mine, theirs], them)).toBe(mine);
    expect(choose([mine, theirs]).plan.kind).toBe("reuse");
    expect(choose([mine, theirs], { self: them }).plan.kind).toBe("clash");
  });

  test("an own key under our former address does not excuse taking another node's address", () => {
    const mine = stored(s(1), { publicIP: "192.0.2.99", nodeId });
    const theirs = stored(s(2), { publicIP: "192.0.2.1", nodeId: otherId });
    expect(choose([mine, theirs]).plan).toMatchObject({ kind: "clash", holder: theirs });
  });
});

describe("create", () => {
  test("upstream's fixture: five leases of others, range 10.3.1.0 to 10.3.25.0", () => {
    const narrow = { ipv4: range4({ subnetMax: "10.3.25.0" }) };
    const leases = [1, 2, 4, 5, 31].map((block) => stored(s(block), { publicIP: "1.1.1.1" }));
    const at = (change: Partial<ChoiceRequest>) =>
      choose(leases, { self: { backendType: "", publicIP: "1.2.3.4" }, ranges: narrow, ...change }).plan;
    const fresh = at({});
    if (fresh.kind !== "create") throw new Error(fresh.kind);
    expect(fresh.origin).toBe("fresh");
    expect(isLegal(fresh.subnets, narrow)).toBeUndefined();
    expect(at({ previous: s(6) })).toEqual({
      kind: "create",
      key: "10.3.6.0-24",
      subnets: s(6),
      origin: "previous",
    });
    expect(at({ previous: { ipv4: "10.4.1.0/24" } })).toMatchObject({ kind: "create", origin: "fresh" });
  });

  test("D7: the previous subnet is somebody else's: another one, and a warning that names the holder", () => {
    const holder = stored(s(95), { publicIP: "192.0.2.11", nodeId: otherId });
    const choice = choose([holder], { previous: s(95) });
    expect(choice.plan).toMatchObject({ kind: "create", origin: "fresh" });
    expect(choice.notes).toMatchObject([{ code: "LEASE_PREVIOUS_TAKEN", severity: "warning" }]);
    for (const word of ["10.3.95.0/24", "192.0.2.11", otherId]) expect(choice.notes[0]!.text).toContain(word);
  });

  test("the previous subnet under a key whose value nobody can read is taken too", () => {
    const bad = [{ key: "10.3.95.0-24", reason: "the value is not JSON", subnets: s(95) }];
    const choice = choose([], { previous: s(95), bad });
    expect(choice.plan).toMatchObject({ kind: "create", origin: "fresh" });
    expect(choice.notes[0]!.text).toContain("unreadable");
  });

  test("a changed config: the own key is removed, its subnet no longer legal, and that is said", () => {
    const own = stored(s(7), { publicIP: "192.0.2.1", nodeId });
    const moved = {
      ipv4: range4({ network: "10.4.0.0/16", subnetMin: "10.4.1.0", subnetMax: "10.4.255.0" }),
    };
    const choice = choose([own], { ranges: moved, previous: s(7) });
    expect(choice.plan).toMatchObject({ kind: "create", origin: "fresh" });
    expect(keys(choice.remove)).toEqual(["10.3.7.0-24"]);
    expect(codes(choice)).toEqual(["LEASE_PREVIOUS_ILLEGAL"]);
  });

  test("IPv6 switched on: the IPv4 subnet stays, whether the subnet file knows it or only the key", () => {
    const own = stored(s(7), { publicIP: "192.0.2.1", nodeId });
    for (const previous of [{ previous: s(7) }, {}]) {
      const choice = choose([own], { ranges: dual, ...previous });
      expect(choice.plan).toMatchObject({ kind: "create", origin: "previous", subnets: s(7) });
      if (choice.plan.kind !== "create") throw new Error(choice.plan.kind);
      expect(isLegal(choice.plan.subnets, dual)).toBeUndefined();
      expect(keys(choice.remove)).toEqual(["10.3.7.0-24"]);
      expect(choice.notes).toEqual([]);
    }
  });

  test("IPv6 switched off: the IPv4 subnet stays", () => {
    const both = { ...s(7), ipv6: "fc00:0:0:7::/64" };
    const own = stored(both, { publicIP: "192.0.2.1", nodeId });
    const choice = choose([own], { previous: both });
    expect(choice.plan).toMatchObject({ kind: "create", origin: "previous", key: "10.3.7.0-24" });
    expect(keys(choice.remove)).toEqual([own.key]);
  });

  test("a reservation that does not fit is named, never removed", () => {
    const reserved = stored({ ipv4: "10.9.9.0/24" }, { publicIP: "192.0.2.1" }, { leaseId: "0" });
    const choice = choose([reserved]);
    expect(choice.plan.kind).toBe("create");
    expect(choice.remove).toEqual([]);
    expect(codes(choice)).toEqual(["LEASE_RESERVATION_UNUSED"]);
  });

  test("A4: an own key whose subnet somebody had before is not used; one we had first is", () => {
    const before = stored({ ...s(7), ipv6: "fc00:0:0:7::/64" }, { publicIP: "192.0.2.2", nodeId: otherId });
    const own = stored(s(7), { publicIP: "192.0.2.1", nodeId });
    // Legal for one of the two only: a foreign key that does not fit the config does not count here.
    expect(choose([before, own]).plan).toMatchObject({ kind: "reuse", lease: own });
    const sibling = stored(
      { ipv4: "10.3.7.0/24", ipv6: "fc00:0:0:8::/64" },
      { publicIP: "192.0.2.1", nodeId },
    );
    const lost = choose([before, sibling], { ranges: dual });
    expect(lost.plan).toMatchObject({ kind: "create" });
    expect(keys(lost.remove)).toEqual([sibling.key]);
    const later = { ...before, createRevision: sibling.createRevision + 1 };
    const kept = choose([later, sibling], { ranges: dual });
    expect(kept.plan).toMatchObject({ kind: "reuse", lease: sibling });
    expect(codes(kept)).toEqual(["LEASE_CONTESTED"]);
  });

  test("exhausted: counts in the text, nothing removed", () => {
    const narrow = { ipv4: range4({ subnetMax: "10.3.3.0" }) };
    const leases = [
      stored(s(1), { publicIP: "192.0.2.11" }),
      stored({ ipv4: "10.3.2.0/23" }, { publicIP: "192.0.2.12" }, { leaseId: "0" }),
      stored({ ipv4: "10.9.1.0/24" }, { publicIP: "192.0.2.1", nodeId }),
    ];
    const choice = choose(leases, { ranges: narrow });
    if (choice.plan.kind !== "exhausted") throw new Error(choice.plan.kind);
    expect(choice.remove).toEqual([]);
    expect(choice.plan.exhausted).toMatchObject({ family: 4, total: 3, used: 3, holders: 2 });
    expect(choice.plan.fault.code).toBe("LEASE_EXHAUSTED");
    expect(choice.plan.fault.message).toContain("3 of 3 in use");
    expect(choice.plan.fault.message).toContain("1 without expiry");
  });

  test("40 nodes, one after the other, on exactly 40 subnets; the 41st finds none", () => {
    const narrow = { ipv4: range4({ subnetMax: "10.3.40.0" }) };
    const leases: StoredLease[] = [];
    const join = (n: number) => {
      const me: LeaseAttrs = { backendType: "", publicIP: `192.0.2.${n}`, nodeId: `node-${n}` };
      return { me, plan: choose(leases, { self: me, ranges: narrow }).plan };
    };
    for (let n = 1; n <= 40; n++) {
      const { me, plan } = join(n);
      if (plan.kind !== "create") throw new Error(plan.kind);
      leases.push(stored(plan.subnets, me));
    }
    expect(new Set(keys(leases)).size).toBe(40);
    expect(join(41).plan.kind).toBe("exhausted");
  });
});
