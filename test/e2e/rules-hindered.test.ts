/**
 * Others stand in the way of the traffic rules: they hold the lock of iptables for long, or their own chain drops what
 * ours accept.
 *
 *   pod ── cni0 ── h1 (iptables-legacy) ── ext0 ─┬─ switch + etcd
 *   pod ── cni0 ── h2 (iptables-nft) ───── ext0 ─┘
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { closeSync, openSync } from "node:fs";
import { join } from "node:path";
import { Cluster, networkConfig } from "../lab/cluster.ts";
import type { Daemon } from "../lab/daemon.ts";
import type { Host } from "../lab/host.ts";
import { ping } from "../lab/ping.ts";
import type { Pod } from "../lab/pod.ts";
import { until } from "../lab/until.ts";
import { command, readStatus } from "./ask.ts";
import { runCommand } from "./command.ts";

const TIMEOUT = 120_000;
/** The time for a lock that others hold, ms. */
const HELD_MS = 20_000;
/** A look at the rules, after the longest pause between two tries that 20 s of refusals lead to, ms. */
const HEALED_MS = 30_000;

let cluster: Cluster;
let [h1, h2]: Host[] = [];
let [p1, p2]: Pod[] = [];
let daemons: readonly Daemon[] = [];

beforeAll(async () => {
  cluster = await Cluster.create({ hosts: 2, family: "dual", config: config(false) });
  [h1, h2] = cluster.hosts;
  for (const name of ["iptables", "ip6tables"]) await run(h1!, `${name}-legacy -t nat -N KUBE-POSTROUTING`);
  await start();
  [p1, p2] = await cluster.addPods();
}, TIMEOUT);
afterAll(() => cluster?.[Symbol.asyncDispose]());

function config(EnableNFTables: boolean) {
  return { ...networkConfig("dual"), EnableNFTables };
}

/** Each with a lock of iptables of its own: the usual one is the whole machine's. */
async function start(): Promise<void> {
  daemons = cluster.hosts.map((host) =>
    cluster.startDaemon(host, { flags: ["--ip-masq"], env: { XTABLES_LOCKFILE: lockFile(host) } }),
  );
  await Promise.all(daemons.map((daemon) => daemon.ready));
}

function lockFile(host: Host): string {
  return join(host.directory, "xtables.lock");
}

function run(host: Host, text: string): Promise<string> {
  return host.namespace.exec("sh", "-ec", `export XTABLES_LOCKFILE=${lockFile(host)}\n${text}`);
}

/** Jumps to our chains in all tables of both families. */
async function jumps(host: Host, variant: "legacy" | "nft"): Promise<number> {
  const saved = await run(host, `iptables-${variant}-save; ip6tables-${variant}-save`);
  return [...saved.matchAll(/^-A (FORWARD|POSTROUTING) .*FLANNEL-/gm)].length;
}

const FLUSH = ["iptables", "ip6tables"]
  .map((name) => `${name}-VARIANT -F; ${name}-VARIANT -t nat -F`)
  .join("\n");

/** Holds the lock of iptables until disposed of. */
async function holdLock(host: Host): Promise<AsyncDisposable> {
  closeSync(openSync(lockFile(host), "a"));
  const holder = Bun.spawn(["flock", lockFile(host), "sh", "-c", "echo held; read line"], {
    stdin: "pipe",
    stdout: "pipe",
  });
  for await (const _ of holder.stdout) break;
  return {
    async [Symbol.asyncDispose]() {
      holder.stdin.end();
      await holder.exited;
    },
  };
}

/** What the daemon of a host shows now under a code, by subject. */
async function shown(host: Host, code: string): Promise<readonly string[]> {
  const { findings } = await readStatus(host);
  return findings.filter((each) => each.code === code).map(({ subject }) => subject);
}

const linesOf = (daemon: Daemon, code: string) => daemon.lines.filter((line) => line.code === code).length;

test(
  "the lock is held for 20 s at the start and at a repair: one line each, then everything is right",
  async () => {
    await Promise.all(daemons.map((daemon) => daemon.stop()));
    await Promise.all([
      run(h1!, FLUSH.replaceAll("VARIANT", "legacy")),
      run(h2!, FLUSH.replaceAll("VARIANT", "nft")),
    ]);
    const locks = [await holdLock(h1!), await holdLock(h2!)];
    const since = performance.now();
    await start();
    // Neither READY nor the subnet file waits for the rules.
    expect(performance.now() - since).toBeLessThan(5_000);
    // iptables-nft has no lock.
    await until(async () => (await jumps(h2!, "nft")) === 4, { message: () => daemons[1]!.tail() });
    await until(async () => (await shown(h1!, "TRAFFIC_LOCKED")).length === 2, {
      message: () => daemons[0]!.tail(),
      deadline: HELD_MS,
    });
    expect((await readStatus(h1!)).ready).toBe(true);
    await Bun.sleep(Math.max(0, HELD_MS - (performance.now() - since)));
    expect(await jumps(h1!, "legacy")).toBe(0);
    // One of each family, however often it was tried.
    expect(linesOf(daemons[0]!, "TRAFFIC_LOCKED")).toBe(2);
    expect(linesOf(daemons[1]!, "TRAFFIC_LOCKED")).toBe(0);
    await locks[0]![Symbol.asyncDispose]();
    await until(async () => (await jumps(h1!, "legacy")) === 4, {
      message: () => daemons[0]!.tail(),
      deadline: HEALED_MS,
    });
    await until(async () => (await shown(h1!, "TRAFFIC_LOCKED")).length === 0, { message: "finding stays" });

    await run(h1!, FLUSH.replaceAll("VARIANT", "legacy"));
    await run(h2!, FLUSH.replaceAll("VARIANT", "nft"));
    await using again = await holdLock(h1!);
    await until(async () => (await shown(h1!, "TRAFFIC_LOCKED")).length === 2, {
      message: () => daemons[0]!.tail(),
      deadline: HELD_MS,
    });
    await until(async () => (await jumps(h2!, "nft")) === 4, { message: () => daemons[1]!.tail() });
    await again[Symbol.asyncDispose]();
    await until(async () => (await jumps(h1!, "legacy")) === 4, {
      message: () => daemons[0]!.tail(),
      deadline: HEALED_MS,
    });
    await locks[1]![Symbol.asyncDispose]();
  },
  TIMEOUT,
);

test(
  "somebody else's chain drops what our nftables table accepts: shown with the commands that mend it",
  async () => {
    await cluster.configure(config(true));
    for (const host of cluster.hosts) {
      await until(async () => (await host.namespace.exec("nft", "list", "tables")).includes("flannel-ipv6"), {
        message: "no tables of ours",
      });
    }
    const passes = async () => [
      (await ping(p1!, p2!.ipv4, { count: 2 })).received === 2,
      (await ping(p1!, p2!.ipv6, { count: 2 })).received === 2,
    ];
    expect(await passes()).toEqual([true, true]);
    const harms: [Host, string, string[]][] = [
      [
        h1!,
        "nft 'add table inet guard { chain denied { type filter hook forward priority 0; policy drop; }; }'",
        ["inet guard denied"],
      ],
      [
        h2!,
        "iptables-nft -P FORWARD DROP; ip6tables-nft -P FORWARD DROP",
        ["ip filter FORWARD", "ip6 filter FORWARD"],
      ],
      // Nothing tells of changes there: it is seen along with the next one of nf_tables.
      [
        h1!,
        "iptables-legacy -P FORWARD DROP; ip6tables-legacy -P FORWARD DROP; nft add table inet anything",
        ["iptables-legacy FORWARD", "ip6tables-legacy FORWARD"],
      ],
    ];
    for (const [host, harm, chains] of harms) {
      await run(host, harm);
      await until(async () => chains.join() === (await shown(host, "FIREWALL_FORWARD")).join(), {
        message: async () => JSON.stringify((await readStatus(host)).findings),
      });
      expect(await passes()).toEqual([false, false]);
      // The check says the same.
      const checked = JSON.parse((await runCommand(cluster, host, ["check", "-o", "json"])).stdout);
      const { findings } = checked.checks.find(({ name }: { name: string }) => name === "firewall");
      expect(
        findings.map(({ code, severity }: { code: string; severity: string }) => `${severity} ${code}`),
      ).toEqual(chains.map(() => "warning FIREWALL_FORWARD"));
      const told = (await readStatus(host)).findings.filter(({ code }) => code === "FIREWALL_FORWARD");
      for (const { fix } of told) {
        for (const [, line = ""] of fix.matchAll(/`([^`]+)`/g)) await run(host, line);
      }
      // Plain `iptables` is the nft one here, and so is what it says of iptables-nft's chains.
      expect(await passes()).toEqual([true, true]);
      if (host === h1!) await run(host, "nft add table inet anything; nft delete table inet anything");
      await until(async () => (await shown(host, "FIREWALL_FORWARD")).length === 0, {
        message: async () => JSON.stringify((await readStatus(host)).findings),
      });
      expect((await command(host, "status")).exitCode).toBe(0);
    }
  },
  TIMEOUT,
);
