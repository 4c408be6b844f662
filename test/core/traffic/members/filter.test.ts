import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { TunnelPacket } from "../../../../core/netlink/objects.ts";
import {
  diffMembers,
  planFilter,
  samePackets,
  sortPackets,
} from "../../../../core/traffic/members/filter.ts";
import { parseFilter } from "../../../../core/traffic/members/parse.ts";
import { renderChange, renderFilter, renderRemoval } from "../../../../core/traffic/members/render.ts";

const PACKETS: readonly TunnelPacket[] = [{ udpPort: 8472 }, { protocol: "ipip" }, { udpPort: 8472 }];
const MEMBERS = new Set(["192.0.2.2", "192.0.2.3"]);
const FILTER = planFilter(4, PACKETS, MEMBERS)!;

test("a filter drops each kind of packet from strangers, and is made in one transaction", () => {
  expect(renderFilter(FILTER)).toBe(`table ip flannel-members
delete table ip flannel-members
table ip flannel-members {
	set members { type ipv4_addr; elements = { 192.0.2.2, 192.0.2.3 }; }
	chain input {
		type filter hook input priority 0; policy accept;
		meta l4proto 4 ip saddr != @members counter drop
		udp dport 8472 ip saddr != @members counter drop
	}
}
`);
});

test("in IPv6 only UDP is filtered; with nothing to filter there is no filter", () => {
  expect(renderFilter(planFilter(6, PACKETS, new Set())!)).toContain(`
	set members { type ipv6_addr; }
	chain input {
		type filter hook input priority 0; policy accept;
		udp dport 8472 ip6 saddr != @members counter drop
	}
`);
  expect(planFilter(6, [{ protocol: "ipip" }], new Set(["fd00::1"]))).toBeUndefined();
  expect(planFilter(4, [], MEMBERS)).toBeUndefined();
});

test("where only members change, only they travel", () => {
  const wanted = planFilter(4, PACKETS, new Set(["192.0.2.3", "192.0.2.4"]))!;
  expect(renderChange(4, diffMembers(FILTER, wanted))).toBe(
    "add element ip flannel-members members { 192.0.2.4 }\ndelete element ip flannel-members members { 192.0.2.2 }\n",
  );
  expect(renderChange(4, diffMembers(FILTER, FILTER))).toBe("");
  expect(renderRemoval(6)).toBe("table ip6 flannel-members\ndelete table ip6 flannel-members\n");
});

test("a change is what makes one set of members the other", () => {
  const anyMembers = fc.uniqueArray(fc.ipV4()).map((list) => new Set(list));
  fc.assert(
    fc.property(anyMembers, anyMembers, (before, after) => {
      const { added, removed } = diffMembers({ ...FILTER, members: before }, { ...FILTER, members: after });
      const result = new Set([...before, ...added]);
      for (const member of removed) expect(result.delete(member)).toBe(true);
      expect(result).toEqual(after);
      expect(added.some((member) => before.has(member))).toBe(false);
    }),
  );
});

test("the order in which packets are named does not matter", () => {
  const other = planFilter(4, sortPackets(PACKETS).toReversed(), MEMBERS)!;
  expect(samePackets(FILTER, other)).toBe(true);
  expect(samePackets(FILTER, planFilter(4, [{ udpPort: 8472 }], MEMBERS)!)).toBe(false);
});

const payload = (protocol: string, field: string, right: unknown, op = "==") => ({
  match: { op, left: { payload: { protocol, field } }, right },
});
const meta = (right: unknown) => ({ match: { op: "==", left: { meta: { key: "l4proto" } }, right } });
const stranger = payload("ip", "saddr", "@members", "!=");
const counter = { counter: { packets: 3, bytes: 252 } };
const drop = { drop: null };
const UDP = [payload("udp", "dport", 8472), stranger, counter, drop];
const IPIP = [meta("ipencap"), stranger, counter, drop];

/** A listing as nft 1.0.6 prints it. */
function listing(change: {
  rules?: unknown[];
  set?: object;
  chain?: object;
  table?: object;
  more?: object[];
}) {
  const { rules = [IPIP, UDP], set = {}, chain = {}, table = {}, more = [] } = change;
  return JSON.stringify({
    nftables: [
      { metainfo: { version: "1.0.6" } },
      { table: { family: "ip", name: "flannel-members", handle: 2, ...table } },
      { set: { name: "members", type: "ipv4_addr", handle: 2, elem: ["192.0.2.3", "192.0.2.2"], ...set } },
      {
        chain: { name: "input", type: "filter", hook: "input", prio: 0, policy: "accept", ...chain },
      },
      ...rules.map((expr) => ({ rule: { chain: "input", handle: 3, expr } })),
      ...more,
    ],
  });
}

describe("a listed table", () => {
  test("is read as it was written, its counters apart", () => {
    expect(parseFilter(listing({}), 4)).toEqual(FILTER);
    for (const number of [4, "ipip", "ipv4"]) {
      expect(parseFilter(listing({ rules: [[meta(number), ...IPIP.slice(1)], UDP] }), 4)).toEqual(FILTER);
    }
    expect(parseFilter(listing({ set: { elem: undefined } }), 4)?.members).toEqual(new Set());
    const six = { rules: [[UDP[0], payload("ip6", "saddr", "@members", "!="), counter, drop]] };
    const elem = ["fd00::0:1", "2001:DB8::1"];
    expect(parseFilter(listing({ ...six, set: { type: "ipv6_addr", elem } }), 6)?.members).toEqual(
      new Set(["fd00::1", "2001:db8::1"]),
    );
  });

  test.each<[string, Parameters<typeof listing>[0]]>([
    ["a dormant table", { table: { flags: ["dormant"] } }],
    ["another hook", { chain: { hook: "forward" } }],
    ["another priority", { chain: { prio: 10 } }],
    ["a chain that drops the rest", { chain: { policy: "drop" } }],
    ["a set of another type", { set: { type: "ipv6_addr" } }],
    ["a range of addresses", { set: { elem: [{ range: ["192.0.2.1", "192.0.2.9"] }] } }],
    ["an element that is no address", { set: { elem: ["somewhere"] } }],
    ["no rules", { rules: [] }],
    ["a rule that accepts", { rules: [[...UDP.slice(0, 3), { accept: null }]] }],
    [
      "a rule that means the members",
      { rules: [[UDP[0], payload("ip", "saddr", "@members"), counter, drop]] },
    ],
    ["a rule of another set", { rules: [[UDP[0], payload("ip", "saddr", "@x", "!="), counter, drop]] }],
    [
      "a rule of another address",
      { rules: [[UDP[0], payload("ip", "daddr", "@members", "!="), counter, drop]] },
    ],
    ["a rule of TCP", { rules: [[payload("tcp", "dport", 8472), stranger, counter, drop]] }],
    ["a rule without a counter", { rules: [[UDP[0], stranger, drop]] }],
    ["a second set", { more: [{ set: { name: "more", type: "ipv4_addr" } }] }],
    ["a second chain", { more: [{ chain: { name: "output" } }] }],
  ])("with %s is none of ours", (_, change) => {
    expect(parseFilter(listing(change), 4)).toBeUndefined();
  });

  test("that is any JSON, or none, does no harm", () => {
    fc.assert(
      fc.property(fc.oneof(fc.json(), fc.string()), (text) => {
        expect(parseFilter(text, 4)).toBeUndefined();
      }),
    );
    const anything = fc.anything({ maxDepth: 3 });
    fc.assert(
      fc.property(
        fc.array(fc.dictionary(fc.constantFrom("set", "chain", "rule", "table"), anything)),
        (list) => {
          expect(parseFilter(JSON.stringify({ nftables: list }), 4)).toBeUndefined();
        },
      ),
    );
  });
});
