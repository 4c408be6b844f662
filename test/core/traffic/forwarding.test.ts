import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { Health } from "../../../core/observe/health.ts";
import { silentLog } from "../../../core/observe/log.ts";
import { acceptsBothWays } from "../../../core/traffic/forwarding/accepts.ts";
import type { AcceptingRule } from "../../../core/traffic/forwarding/chain.ts";
import { parseLegacyDrops, parseLegacyRules } from "../../../core/traffic/forwarding/legacy.ts";
import { listDenials } from "../../../core/traffic/forwarding/list.ts";
import { parseAcceptingRules, parseDroppingChains } from "../../../core/traffic/forwarding/nftables.ts";
import { TrafficManager } from "../../../core/traffic/manager.ts";
import { until } from "../../lab/until.ts";
import { INTENT, openMachine } from "./machine.ts";

setDefaultTimeout(60_000);

const N = "10.244.0.0/16";

describe("a network is accepted both ways", () => {
  test.each<[string, Readonly<Record<string, readonly AcceptingRule[]>>, boolean]>([
    ["by a rule for each end", { f: [{ source: N }, { destination: "10.0.0.0/8" }] }, true],
    ["by one for everything", { f: [{}] }, true],
    ["in a chain that is jumped to", { f: [{ to: "own" }], own: [{ source: N }, { destination: N }] }, true],
    ["in two chains", { f: [{ source: N, to: "a" }, { to: "b" }], a: [{}], b: [{ destination: N }] }, true],
    ["not one way alone", { f: [{ source: N }] }, false],
    ["not between pods alone", { f: [{ source: N, destination: N }] }, false],
    ["not by a part of it", { f: [{ source: "10.244.1.0/24" }, { destination: "10.244.1.0/24" }] }, false],
    ["not by a chain that is not there", { f: [{ to: "gone" }] }, false],
    ["not in a circle", { f: [{ to: "g" }], g: [{ to: "f" }] }, false],
    ["not by nothing", {}, false],
  ])("%s", (_, chains, expected) => {
    expect(acceptsBothWays(new Map(Object.entries(chains)), "f", N)).toBe(expected);
  });
});

test.each([
  "",
  "no JSON",
  "[]",
  "{}",
  '{"nftables":[]}',
  '{"nftables":{}}',
  '{"nftables":[null,{"chain":7},{"rule":{"chain":"f","expr":[7,{"accept":null}]}}]}',
])("%p lists nothing, and nothing throws", (text) => {
  expect(parseDroppingChains(text)).toEqual([]);
  expect(acceptsBothWays(parseAcceptingRules(text, 4), "f", N)).toBe(false);
  expect(parseLegacyDrops(text, "iptables-legacy", 4)).toEqual([]);
  expect(parseLegacyRules(text).size).toBe(0);
});

/** Chains with what they drop, as a real kernel shows them. */
async function denials(machine: Awaited<ReturnType<typeof openMachine>>): Promise<Record<string, string>> {
  const found = await listDenials(machine.host, { 4: N, 6: "fd00:10:244::/48" });
  return Object.fromEntries(found.map(({ chain, networks }) => [chain.name, networks.join(" ")]));
}

test("a real kernel's chains, of every front end", async () => {
  await using machine = await openMachine("denials");
  const sh = (text: string) =>
    machine.ns.exec("sh", "-ec", `export XTABLES_LOCKFILE=${machine.lockFile}\n${text}`);
  expect(await denials(machine)).toEqual({});
  await sh(`iptables-nft -P FORWARD DROP
    ip6tables-nft -P FORWARD DROP
    ip6tables-nft -A FORWARD -i eth0 -j ACCEPT
    iptables-legacy -P FORWARD DROP
    ip6tables-legacy -P INPUT DROP
    nft 'add table inet fw { chain f { type filter hook forward priority 0; policy drop; }; chain g { accept; }; }'
    nft 'add rule inet fw f ct state established accept; add rule inet fw f iifname eth0 jump g'
    nft 'add table bridge b { chain f { type filter hook forward priority 0; policy drop; }; }'`);
  const all = {
    "ip filter FORWARD": N,
    "ip6 filter FORWARD": "fd00:10:244::/48",
    "inet fw f": `${N} fd00:10:244::/48`,
    "iptables-legacy FORWARD": N,
    "ip6tables-legacy INPUT": "fd00:10:244::/48",
  };
  expect(await denials(machine)).toEqual(all);
  await sh(`nft 'add rule inet fw f meta nfproto ipv4 counter jump g; add rule inet fw f ip6 saddr fd00::/16 accept'
    iptables-legacy -N OWN; iptables-legacy -A FORWARD -j OWN
    iptables-legacy -A OWN -s ${N} -m comment --comment x -j ACCEPT; iptables-legacy -A OWN -d ${N} -j ACCEPT
    iptables-nft -A FORWARD -s ${N} -m comment --comment x -j ACCEPT; iptables-nft -A FORWARD -d ${N} -j ACCEPT`);
  expect(await denials(machine)).toEqual({
    ...all,
    "ip filter FORWARD": "",
    "inet fw f": "fd00:10:244::/48",
    "iptables-legacy FORWARD": "",
  });
});

test.each([
  ["nftables", "nft", ["ip filter FORWARD", "inet fw f", "ip6 filter FORWARD"]],
  ["iptables", "nft", ["inet fw f"]],
] as const)(
  "%s: a manager shows it until the printed commands are run, without a process when idle",
  async (kind, _, expected) => {
    await using machine = await openMachine("denied", /legacy/);
    const health = new Health(silentLog);
    const manager = new TrafficManager({ host: machine.host, health, log: silentLog, resync: 1_000 });
    const stop = new AbortController();
    await manager.apply({ ...INTENT, kind });
    const running = manager.run(stop.signal);
    const names = () =>
      health
        .active()
        .map(({ finding, subject }) => (finding.code === "FIREWALL_FORWARD" ? subject : finding.code))
        .sort();
    try {
      await machine.ns.exec(
        "sh",
        "-ec",
        `iptables-nft -P FORWARD DROP; ip6tables-nft -P FORWARD DROP
       nft 'add table inet fw { chain f { type filter hook forward priority 0; policy drop; }; }'`,
      );
      await until(() => names().join() === [...expected].sort().join(), {
        message: () => JSON.stringify(health.list()),
      });
      // What the text says to do is enough.
      for (const { fix } of health.list()) {
        if (kind === "nftables" && !fix.includes("inet fw"))
          expect(fix).toContain('"EnableNFTables" to false');
        for (const [, line = ""] of fix.matchAll(/`([^`]+)`/g)) await machine.ns.exec("sh", "-ec", line);
      }
      await until(() => names().length === 0, { message: () => JSON.stringify(health.list()) });
      let count = -1;
      await until(
        async () => {
          const [before, looks] = [machine.commands.length, machine.looks()];
          await until(() => machine.looks() > looks + 8, { message: "looks" });
          count = machine.commands.length - before;
          return count === 0;
        },
        { message: () => `${count} commands` },
      );
    } finally {
      stop.abort();
      await running;
    }
  },
);
