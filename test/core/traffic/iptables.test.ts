import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { isPlainJump, parseRule } from "../../../core/traffic/iptables/line.ts";
import { planRemoval, planRestore } from "../../../core/traffic/iptables/plan.ts";
import { parseSave } from "../../../core/traffic/iptables/save.ts";
import { findToolsets, parseVersion } from "../../../core/traffic/iptables/toolset.ts";
import { chooseVariant } from "../../../core/traffic/iptables/variant.ts";
import { planRules } from "../../../core/traffic/rules.ts";
import { anyFamily, anySwitches } from "./arbitrary.ts";
import { GOLDEN, INTENT, ours } from "./machine.ts";

const RULES = planRules(4, INTENT.ipv4!, INTENT);
const EMPTY = parseSave("");

describe("a restore", () => {
  test("into nothing has upstream's rules, and exactly one jump per chain", () => {
    const { payload, actions } = planRestore(EMPTY, RULES);
    expect(ours(payload).toSorted()).toEqual(GOLDEN[4].toSorted());
    expect(payload.match(/^COMMIT$/gm)).toHaveLength(2);
    expect(actions).toEqual([
      "created chain FLANNEL-POSTRTG in table nat",
      "added the jump from POSTROUTING to FLANNEL-POSTRTG in table nat",
      "created chain FLANNEL-FWD in table filter",
      "added the jump from FORWARD to FLANNEL-FWD in table filter",
    ]);
  });

  test("is empty when everything is there, whatever was asked for", () => {
    for (const family of [4, 6] as const) {
      fc.assert(
        fc.property(anyFamily(family), anySwitches, (wanted, intent) => {
          const rules = planRules(family, wanted, intent);
          const first = planRestore(EMPTY, rules);
          const second = planRestore(parseSave(first.payload), rules);
          expect(second).toEqual({ payload: "", actions: [] });
        }),
        { numRuns: 200 },
      );
    }
  });

  test("touches just the chain that differs, and not its jump", () => {
    const save = GOLDEN[4].join("\n");
    const state = parseSave(`*filter\n${save.replace("\n:FLANNEL-POSTRTG", "\n*nat\n:FLANNEL-POSTRTG")}`);
    expect(planRestore(state, RULES).payload).toBe("");
    const moved = planRules(4, { ...INTENT.ipv4!, subnet: "10.244.9.0/24" }, INTENT);
    const { payload } = planRestore(state, moved);
    expect(payload).toStartWith("*nat\n:FLANNEL-POSTRTG - [0:0]\n-A FLANNEL-POSTRTG -m mark");
    expect(payload).not.toContain("filter");
    expect(payload).not.toContain("POSTROUTING");
    expect(payload).not.toContain("10.244.1.0/24");
    const off = planRestore(state, { ...RULES, forward: [] });
    expect(off.payload).toBe(
      '*filter\n-D FORWARD -m comment --comment "flanneld forward" -j FLANNEL-FWD\n-F FLANNEL-FWD\n-X FLANNEL-FWD\nCOMMIT\n',
    );
  });

  test("leaves one plain jump where it is and takes away every other one of the base chain", () => {
    const jump = '-m comment --comment "flanneld masq" -j FLANNEL-POSTRTG';
    const { payload } = planRestore(EMPTY, { ...RULES, forward: [] });
    const chain = payload.replace(/^-A POSTROUTING.*\nCOMMIT\n/m, "");
    const plan = (...lines: string[]) =>
      planRestore(parseSave([chain, ...lines].join("\n")), { ...RULES, forward: [] }).payload;
    expect(plan(`-A POSTROUTING ${jump}`, "-A POSTROUTING -j MASQUERADE")).toBe("");
    expect(plan("-A POSTROUTING -j FLANNEL-POSTRTG", "-A OUTPUT -j FLANNEL-POSTRTG")).toBe("");
    expect(plan(...Array(5).fill(`-A POSTROUTING ${jump}`))).toBe(
      `*nat\n${`-D POSTROUTING ${jump}\n`.repeat(4)}COMMIT\n`,
    );
    expect(plan("-A POSTROUTING -s 10.0.0.0/8 -j FLANNEL-POSTRTG", "-A POSTROUTING -g FLANNEL-POSTRTG")).toBe(
      [
        "*nat",
        "-D POSTROUTING -s 10.0.0.0/8 -j FLANNEL-POSTRTG",
        "-D POSTROUTING -g FLANNEL-POSTRTG",
        `-A POSTROUTING ${jump}`,
        "COMMIT\n",
      ].join("\n"),
    );
  });

  test("takes all jumps away before the chains", () => {
    const state = parseSave(
      "*nat\n:FLANNEL-POSTRTG - [0:0]\n-A PREROUTING -j FLANNEL-POSTRTG\n-A POSTROUTING -j FLANNEL-POSTRTG\nCOMMIT\n*filter\n:X - [0:0]\nCOMMIT",
    );
    expect(planRemoval(state)).toEqual({
      payload:
        "*nat\n-D PREROUTING -j FLANNEL-POSTRTG\n-D POSTROUTING -j FLANNEL-POSTRTG\n-F FLANNEL-POSTRTG\n-X FLANNEL-POSTRTG\nCOMMIT\n",
      actions: [
        "removed the jump from PREROUTING to FLANNEL-POSTRTG in table nat",
        "removed the jump from POSTROUTING to FLANNEL-POSTRTG in table nat",
        "removed chain FLANNEL-POSTRTG in table nat",
      ],
    });
    expect(planRemoval(EMPTY).payload).toBe("");
  });
});

describe("a saved rule", () => {
  test.each([
    ["-s 10.5.0.0/16 -j ACCEPT", { source: { prefix: "10.5.0.0/16" }, verdict: "accept" }],
    [
      "-s 10.5.7.7/16 ! -d 10.6.0.1 -j RETURN",
      {
        source: { prefix: "10.5.0.0/16" },
        destination: { prefix: "10.6.0.1/32", not: true },
        verdict: "return",
      },
    ],
    ["-d FD00:0::/48 -j RETURN", { destination: { prefix: "fd00::/48" }, verdict: "return" }],
    ["-s 0.0.0.0/0 -j ACCEPT", { verdict: "accept" }],
    ["-m mark --mark 0x4000 -j RETURN", { mark: { value: 0x4000, mask: 0xffffffff }, verdict: "return" }],
    ['-m comment --comment "a \\"b\\" -j DROP" -j ACCEPT', { verdict: "accept" }],
    ["-m comment --comment plain -j MASQUERADE", { verdict: "masquerade" }],
  ])("%s is understood", (spec, rule) => {
    expect(parseRule(spec)).toEqual(rule as ReturnType<typeof parseRule>);
  });

  test.each([
    "-j DROP",
    "-g ACCEPT",
    "-j ACCEPT --random-fully",
    "-j MASQUERADE --random",
    "-j MASQUERADE --to-ports 1-9",
    "-p tcp -j ACCEPT",
    "-i eth0 -j ACCEPT",
    "! -i eth0 -j ACCEPT",
    "-m mark ! --mark 0x4000 -j RETURN",
    "-m conntrack --ctstate NEW -j ACCEPT",
    "! -s 0.0.0.0/0 -j ACCEPT",
    "-s nonsense -j ACCEPT",
    "",
  ])("%p is none of ours", (spec) => {
    expect(parseRule(spec)).toBeUndefined();
  });

  test("with conditions is no plain jump", () => {
    expect(isPlainJump("-j X", "X")).toBe(true);
    for (const spec of ["-j Y", "-g X", "-s 10.0.0.0/8 -j X", "-m mark --mark 1 -j X"]) {
      expect(isPlainJump(spec, "X")).toBe(false);
    }
  });
});

describe("the variant of iptables", () => {
  const others = (rules: number, leaders = false) => ({ rules, leaders });

  test.each([
    [others(0), others(0), "nft", "nft"],
    [others(0), others(0), "legacy", "legacy"],
    [others(3), others(2), "legacy", "nft"],
    [others(3), others(9), "nft", "legacy"],
    [others(1, true), others(9), "legacy", "nft"],
    [others(9), others(1, true), "nft", "legacy"],
    [others(2, true), others(1, true), "legacy", "nft"],
  ] as const)("nft %j, legacy %j, else %s: %s", (nft, legacy, otherwise, wanted) => {
    expect(chooseVariant({ nft, legacy }, otherwise)).toBe(wanted);
  });

  test("is judged by others' rules and chains, in any table", () => {
    const { payload } = planRestore(EMPTY, RULES);
    expect(parseSave(payload).others).toEqual(others(0));
    expect(parseSave("*mangle\n:KUBE-IPTABLES-HINT - [0:0]\nCOMMIT").others).toEqual(others(0, true));
    expect(parseSave("*nat\n:DOCKER - [0:0]\n-A DOCKER -j RETURN\nCOMMIT").others).toEqual(others(1, true));
  });

  test.each([
    ["iptables v1.8.9 (nf_tables)", { variant: "nft", command: "iptables", recent: true }],
    ["iptables v1.8.10 (legacy)", { variant: "legacy", command: "iptables", recent: true }],
    ["iptables v1.6.2", { variant: "legacy", command: "iptables", recent: true }],
    ["iptables v1.6.1", { variant: "legacy", command: "iptables", recent: false }],
    ["iptables v1.4.21", { variant: "legacy", command: "iptables", recent: false }],
    ["", { variant: "legacy", command: "iptables", recent: false }],
  ] as const)("%p", (text, toolset) => {
    expect(parseVersion(text)).toEqual(toolset);
  });

  test("stands for plain iptables where there are no others", async () => {
    const run = async () => ({ stdout: "iptables v1.6.1\n", stderr: "" });
    const found = await findToolsets(run, (command) => command === "iptables");
    expect(found.installed.map(({ command, recent }) => [command, recent])).toEqual([["iptables", false]]);
    expect(await findToolsets(run, () => false)).toEqual({ installed: [], usual: undefined });
  });
});
