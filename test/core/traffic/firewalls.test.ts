import { describe, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import type { Firewall } from "../../../core/traffic/firewall.ts";
import type { Family } from "../../../core/traffic/intent.ts";
import { IptablesFirewall } from "../../../core/traffic/iptables/firewall.ts";
import { NftablesFirewall } from "../../../core/traffic/nftables/firewall.ts";
import { planRules } from "../../../core/traffic/rules.ts";
import { anyFamily, anySwitches } from "./arbitrary.ts";
import { GOLDEN, INTENT, type Machine, openMachine, ours } from "./machine.ts";

setDefaultTimeout(60_000);

const variant = (name: "nft" | "legacy") => (machine: Machine) =>
  new IptablesFirewall(
    machine.host.run,
    { variant: name, command: `iptables-${name}`, recent: true },
    machine.host.legacyTables,
  );

const FIREWALLS: readonly (readonly [string, (machine: Machine) => Firewall])[] = [
  ["nftables", ({ host }) => new NftablesFirewall(host.run)],
  ["iptables-nft", variant("nft")],
  ["iptables-legacy", variant("legacy")],
];

const WANTED = { 4: INTENT.ipv4!, 6: INTENT.ipv6! };
const rulesOf = (family: Family, change: object = {}) =>
  planRules(family, WANTED[family], { ...INTENT, ...change });

/** Everything a firewall of any kind holds, without counters. */
async function dump({ ns }: Machine): Promise<string> {
  const texts = [await ns.exec("nft", "-s", "list", "ruleset")];
  for (const save of ["iptables-legacy-save", "ip6tables-legacy-save"]) texts.push(await ns.exec(save));
  return texts.join("").replace(/^#.*$|\[\d+:\d+\]|counter packets \d+ bytes \d+/gm, "");
}

/** Commands that write, run since `from`. */
function writes({ commands }: Machine, from = 0): string[] {
  return commands.slice(from).filter((command) => /restore|nft -f/.test(command));
}

describe.each(FIREWALLS)("%s", (name, open) => {
  test.each([4, 6] as const)("IPv%i: written once, then left alone, recycled, removed", async (family) => {
    await using machine = await openMachine(`fw${family}`);
    const firewall = open(machine);
    // Others' rules, and the tables they are in.
    const iptables = `ip${family === 6 ? "6" : ""}tables-${name === "iptables-legacy" ? "legacy" : "nft"}`;
    await machine.ns.exec(iptables, "-A", "FORWARD", "-i", "nosuch", "-j", "DROP");
    await machine.ns.exec(iptables, "-t", "nat", "-A", "POSTROUTING", "-o", "nosuch", "-j", "ACCEPT");
    const before = await dump(machine);

    expect(await firewall.reconcile(rulesOf(family))).not.toEqual([]);
    expect(writes(machine)).toHaveLength(1);
    const full = await dump(machine);
    expect(full).not.toBe(before);
    if (name !== "nftables") {
      expect(ours(await machine.ns.exec(`${iptables}-save`))).toEqual([...GOLDEN[family]]);
    }
    expect(await firewall.reconcile(rulesOf(family))).toEqual([]);
    expect(writes(machine)).toHaveLength(1);

    const moved = { ...WANTED[family], subnet: family === 4 ? "10.244.9.0/24" : "fd00:10:244:9::/64" };
    await firewall.reconcile(planRules(family, moved, INTENT));
    const text = await dump(machine);
    expect(text).toContain(moved.subnet);
    expect(text).not.toContain(WANTED[family].subnet);
    expect(await firewall.reconcile(rulesOf(family, { forward: false }))).not.toEqual([]);
    expect(await dump(machine)).not.toMatch(/FLANNEL-FWD|chain forward/);

    const planned = await firewall.remove(family, true);
    expect(planned).not.toEqual([]);
    expect(await firewall.remove(family, false)).toEqual(planned);
    expect(await dump(machine)).toBe(before);
    const count = writes(machine).length;
    expect(await firewall.remove(family, false)).toEqual([]);
    expect(await firewall.reconcile(rulesOf(family, { masquerade: false, forward: false }))).toEqual([]);
    expect(writes(machine)).toHaveLength(count);

    // From nothing at all, in a table that does not exist yet.
    expect(await firewall.reconcile(rulesOf(family))).not.toEqual([]);
    expect(await dump(machine)).toBe(full);
  });

  test("takes any rules in and reads them back as equal", async () => {
    await using machine = await openMachine("fwp");
    const firewall = open(machine);
    const cases = fc
      .constantFrom(4 as const, 6 as const)
      .chain((family) =>
        fc.record({ family: fc.constant(family), wanted: anyFamily(family), intent: anySwitches }),
      );
    await fc.assert(
      fc.asyncProperty(cases, async ({ family, wanted, intent }) => {
        const rules = planRules(family, wanted, intent);
        await firewall.reconcile(rules);
        expect(await firewall.reconcile(rules)).toEqual([]);
      }),
      { numRuns: 8 },
    );
  });
});

describe("what others did to our rules is made good", () => {
  const TABLE = "ip flannel-ipv4";
  test("in nftables", async () => {
    await using machine = await openMachine("heal");
    const firewall = new NftablesFirewall(machine.host.run);
    await firewall.reconcile(rulesOf(4));
    const list = () => machine.ns.exec("nft", "list", "ruleset");
    const right = await list();
    for (const command of [
      "flush ruleset",
      `delete table ${TABLE}`,
      `flush chain ${TABLE} postrtg`,
      `insert rule ${TABLE} postrtg accept`,
      `add rule ${TABLE} forward ip saddr 10.244.0.0/16 accept`,
      `add chain ${TABLE} more`,
      `add set ${TABLE} s { type ipv4_addr; }`,
      `add table ${TABLE} { flags dormant; }`,
      `chain ${TABLE} forward { policy drop; }`,
      `flush chain ${TABLE} postrtg; add rule ${TABLE} postrtg meta mark 0x4000 return; add rule ${TABLE} postrtg ip saddr 10.244.0.0/16 ip daddr != 224.0.0.0/4 masquerade fully-random`,
    ]) {
      await machine.ns.exec("nft", command);
      expect(await list()).not.toBe(right);
      expect(await firewall.reconcile(rulesOf(4))).toHaveLength(1);
      expect(await list()).toBe(right);
    }
    expect(await firewall.reconcile(rulesOf(4))).toEqual([]);
  });

  test.each(["nft", "legacy"] as const)("in iptables-%s", async (kind) => {
    await using machine = await openMachine("heali");
    const firewall = variant(kind)(machine);
    const iptables = (line: string) => machine.ns.exec(`iptables-${kind}`, ...line.split(" "));
    await firewall.reconcile(rulesOf(4));
    const save = async () => ours(await machine.ns.exec(`iptables-${kind}-save`));
    for (const lines of [
      ["-t nat -F"],
      ["-F"],
      ["-t nat -D FLANNEL-POSTRTG 2"],
      ["-I FLANNEL-FWD -j DROP"],
      ["-D FLANNEL-FWD 1", "-A FLANNEL-FWD -s 10.244.0.0/16 -j ACCEPT"],
      ["-F FORWARD", "-F FLANNEL-FWD", "-X FLANNEL-FWD"],
      Array(5).fill("-t nat -I POSTROUTING -m comment --comment x -j FLANNEL-POSTRTG"),
    ]) {
      for (const line of lines) await iptables(line);
      expect(await save()).not.toEqual([...GOLDEN[4]]);
      const from = machine.commands.length;
      expect(await firewall.reconcile(rulesOf(4))).not.toEqual([]);
      expect(writes(machine, from)).toHaveLength(1);
      expect(await save()).toEqual([...GOLDEN[4]]);
    }
    if (kind === "nft") {
      await machine.ns.exec("nft", "flush", "ruleset");
      await firewall.reconcile(rulesOf(4));
      expect(await save()).toEqual([...GOLDEN[4]]);
    }
  });

  test("ten writers at once leave one jump and whole chains", async () => {
    await using machine = await openMachine("ten");
    for (const kind of ["nft", "legacy"] as const) {
      const firewalls = Array.from({ length: 10 }, () => variant(kind)(machine));
      await Promise.allSettled(firewalls.map((firewall) => firewall.reconcile(rulesOf(4))));
      // Two that both found nothing have both added a jump: the next look of any of them takes it away.
      for (const firewall of firewalls) await firewall.reconcile(rulesOf(4));
      expect(ours(await machine.ns.exec(`iptables-${kind}-save`))).toEqual([...GOLDEN[4]]);
    }
  });
});
