import { describe, expect, test } from "bun:test";
import { parseTable } from "../../../core/traffic/nftables/parse.ts";
import { renderTransaction } from "../../../core/traffic/nftables/render.ts";
import { planRules } from "../../../core/traffic/rules.ts";
import { INTENT } from "./machine.ts";

const RULES = planRules(4, { ...INTENT.ipv4!, masqExclude: ["192.0.2.7/32"] }, INTENT);

test("a transaction replaces the table whatever it was, and has rules that are all reached", () => {
  expect(renderTransaction(RULES)).toBe(`table ip flannel-ipv4
delete table ip flannel-ipv4
table ip flannel-ipv4 {
	chain postrtg {
		type nat hook postrouting priority 100; policy accept;
		meta mark & 0x00004000 == 0x00004000 return
		ip saddr 10.244.1.0/24 ip daddr 10.244.0.0/16 return
		ip saddr 10.244.0.0/16 ip daddr 10.244.1.0/24 return
		ip saddr != 10.244.0.0/16 ip daddr 10.244.1.0/24 return
		ip saddr 10.244.0.0/16 ip daddr 192.0.2.7/32 return
		ip saddr 10.244.0.0/16 ip daddr != 224.0.0.0/4 masquerade fully-random
		ip saddr != 10.244.0.0/16 ip daddr 10.244.0.0/16 masquerade fully-random
	}
	chain forward {
		type filter hook forward priority 0; policy accept;
		ip saddr 10.244.0.0/16 accept
		ip daddr 10.244.0.0/16 accept
	}
}
`);
  expect(renderTransaction({ family: 6, masquerade: [], forward: [] })).toBe(
    "table ip6 flannel-ipv6\ndelete table ip6 flannel-ipv6\n",
  );
});

const payload = (field: string, right: unknown, op = "==") => ({
  match: { op, left: { payload: { protocol: "ip", field } }, right },
});
const N = { prefix: { addr: "10.244.0.0", len: 16 } };
const chain = { name: "forward", type: "filter", hook: "forward", prio: 0, policy: "accept" };
const table = { family: "ip", name: "flannel-ipv4", handle: 1 };

/** A listing with one rule in `forward`. */
function listing(expr: unknown, changes: { chain?: object; table?: object; more?: object[] } = {}): string {
  return JSON.stringify({
    nftables: [
      { metainfo: { version: "1.0.6" } },
      { table: { ...table, ...changes.table } },
      { chain: { ...chain, ...changes.chain } },
      { rule: { chain: "forward", handle: 4, expr } },
      ...(changes.more ?? []),
    ],
  });
}

describe("a listed rule", () => {
  test.each([
    [[payload("saddr", N), { accept: null }], { source: { prefix: "10.244.0.0/16" }, verdict: "accept" }],
    [
      [payload("daddr", "192.0.2.7", "!="), { return: null }],
      { destination: { prefix: "192.0.2.7/32", not: true }, verdict: "return" },
    ],
    [[{ masquerade: null }], { verdict: "masquerade" }],
    [[{ masquerade: { flags: "fully-random" } }], { verdict: "masquerade-random" }],
    [[{ masquerade: { flags: ["fully-random"] } }], { verdict: "masquerade-random" }],
    [
      [
        { match: { op: "==", left: { "&": [{ meta: { key: "mark" } }, 0x4000] }, right: 0x4000 } },
        { return: null },
      ],
      { mark: { value: 0x4000, mask: 0x4000 }, verdict: "return" },
    ],
  ] as const)("%j is understood", (expr, rule) => {
    expect(parseTable(listing(expr), 4)?.forward).toEqual([rule]);
  });

  test.each([
    [[]],
    [[{ drop: null }]],
    [[payload("saddr", N)]],
    [[{ accept: null }, payload("saddr", N)]],
    [[{ accept: null }, { accept: null }]],
    [[{ counter: { packets: 1, bytes: 84 } }, { accept: null }]],
    [[payload("saddr", N), payload("saddr", N), { accept: null }]],
    [[payload("protocol", "tcp"), { accept: null }]],
    [[payload("saddr", { set: ["10.0.0.1"] }), { accept: null }]],
    [[payload("saddr", N, "<"), { accept: null }]],
    [[{ match: { op: "==", left: { meta: { key: "mark" } }, right: 0x4000 } }, { return: null }]],
    [[{ match: { op: "!=", left: { "&": [{ meta: { key: "mark" } }, 1] }, right: 1 } }, { return: null }]],
    [[{ match: { op: "==", left: { "&": [{ ct: { key: "mark" } }, 1] }, right: 1 } }, { return: null }]],
    [[{ masquerade: { flags: ["fully-random", "persistent"] } }]],
    [[{ masquerade: { port: 1024 } }]],
    ["no list"],
  ])("%j is none of ours", (expr) => {
    expect(parseTable(listing(expr), 4)).toBeUndefined();
  });
});

test.each([
  ["another hook", { chain: { hook: "input" } }],
  ["another priority", { chain: { prio: -1 } }],
  ["a denying policy", { chain: { policy: "drop" } }],
  ["a chain of others", { chain: { name: "other" } }],
  ["a sleeping table", { table: { flags: "dormant" } }],
  ["a set", { more: [{ set: { name: "s" } }] }],
  ["an empty chain", { more: [{ chain: { ...chain, name: "postrtg" } }] }],
])("a table with %s is not as we write it", (_, changes) => {
  const expr = [payload("saddr", N), { accept: null }];
  expect(parseTable(listing(expr), 4)).toBeDefined();
  expect(parseTable(listing(expr, changes), 4)).toBeUndefined();
  expect(parseTable(listing(expr), 6)).toBeUndefined();
});

test.each(["", "no JSON", "[]", "{}", '{"nftables":[]}', '{"nftables":{}}', "null"])(
  "%p is no table",
  (text) => {
    expect(parseTable(text, 4)).toBeUndefined();
  },
);
