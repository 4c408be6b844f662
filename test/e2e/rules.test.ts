/**
 * Packets of pods leave the cluster under the node's address and pass the host's firewall, through whichever front
 * end of the kernel the rules go, and whoever flushes them.
 *
 *   pod ── cni0 ── h1 ── ext0 ─┬─ switch + etcd, 203.0.113.9, fd00:99::9 (MasqExclude)
 *   pod ── cni0 ── h2 ── ext0 ─┘
 *
 * On h1 somebody uses iptables-legacy, on h2 nobody uses anything.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { Cluster, networkConfig } from "../lab/cluster.ts";
import type { Host } from "../lab/host.ts";
import type { Pod } from "../lab/pod.ts";
import { until } from "../lab/until.ts";
import { EXCLUDED, Listener, routeOutside, seenFrom } from "./outside.ts";

const TIMEOUT = 90_000;
/** `--iptables-resync` by default, ms. */
const RESYNC_MS = 5_000;
/** What reading everything back may take on a busy machine, ms. */
const READING_MS = 500;
/** Our nftables tables. */
const TABLES = ["ip flannel-ipv4", "ip6 flannel-ipv6"] as const;
const FAMILIES = ["ipv4", "ipv6"] as const;

type Variant = "nft" | "legacy";

/** A host with its pod, the pod of the other, and the variant of iptables in use on it. */
interface Side {
  readonly host: Host;
  readonly pod: Pod;
  readonly peer: Pod;
  readonly variant: Variant;
}

let cluster: Cluster;
const sides: Side[] = [];
const listeners: Listener[] = [];

beforeAll(async () => {
  cluster = await Cluster.create({ hosts: 2, family: "dual", config: config(false) });
  const [h1, h2] = cluster.hosts as [Host, Host];
  for (const command of ["iptables", "ip6tables"]) {
    await tables(h1, `${command}-legacy -t nat -N KUBE-POSTROUTING`);
  }
  await start();
  const [p1, p2] = (await cluster.addPods()) as [Pod, Pod];
  for (const host of cluster.hosts) await routeOutside(host);
  for (const place of [cluster.switch, p1, p2]) listeners.push(await Listener.open(place));
  sides.push({ host: h1, pod: p1, peer: p2, variant: "legacy" });
  sides.push({ host: h2, pod: p2, peer: p1, variant: "nft" });
}, TIMEOUT);
afterAll(async () => {
  for (const listener of listeners) listener[Symbol.dispose]();
  await cluster?.[Symbol.asyncDispose]();
});

function config(EnableNFTables: boolean) {
  return {
    ...networkConfig("dual"),
    EnableNFTables,
    MasqExclude: [`${EXCLUDED.ipv4}/32`, `${EXCLUDED.ipv6}/128`],
  };
}

/** Starts the daemons, each with a lock of iptables of its own: the usual one is the whole machine's. */
async function start(...flags: readonly string[]): Promise<void> {
  const started = cluster.hosts.map((host) =>
    cluster.startDaemon(host, {
      flags: ["--ip-masq", ...flags],
      env: { XTABLES_LOCKFILE: lockFile(host) },
    }),
  );
  await Promise.all(started.map((daemon) => daemon.ready));
}

async function stop(): Promise<void> {
  await Promise.all(cluster.daemons.map((daemon) => daemon.stop()));
}

function lockFile(host: Host): string {
  return join(host.directory, "xtables.lock");
}

/** Runs lines of shell on a host. */
function tables(host: Host, ...lines: readonly string[]): Promise<string> {
  const script = [`export XTABLES_LOCKFILE=${lockFile(host)}`, ...lines].join("\n");
  return host.namespace.exec("sh", "-ec", script);
}

/** The same lines for both families; `iptables` stands for the command of a variant. */
function bothFamilies(variant: Variant, ...lines: readonly string[]): readonly string[] {
  return ["iptables", "ip6tables"].flatMap((command) =>
    lines.map((line) => line.replaceAll("iptables", `${command}-${variant}`)),
  );
}

/** What a host has of ours in one variant of iptables, sorted; right after the commands `first`, if there are any. */
async function oursIn(
  host: Host,
  variant: Variant,
  first: readonly string[] = [],
): Promise<readonly string[]> {
  const save = await tables(host, ...first, ...bothFamilies(variant, "iptables-save"));
  return save
    .split("\n")
    .filter((line) => line.includes("FLANNEL-"))
    .sort();
}

/** Our nftables tables of a host, `ip flannel-ipv4`, sorted. */
async function ourTables(host: Host): Promise<readonly string[]> {
  const listing = await host.namespace.exec("nft", "list", "tables");
  return [...listing.matchAll(/^table (ip6? flannel-ipv[46])$/gm)].map(([, table]) => table ?? "").sort();
}

/** What is in our nftables tables; throws when one is not there. */
async function listTables(host: Host): Promise<string> {
  const listings = TABLES.map((table) => host.namespace.exec("nft", "list", "table", ...table.split(" ")));
  return (await Promise.all(listings)).join("");
}

/** Waits until a host has exactly `wanted` of ours in a variant; throws after `deadline` ms. */
async function expectOurs(
  { host, variant }: Side,
  wanted: readonly string[],
  deadline: number,
): Promise<void> {
  let last: readonly string[] = [];
  await until(
    async () => {
      last = await oursIn(host, variant);
      return last.join("\n") === wanted.join("\n");
    },
    {
      message: () => `${host.name} has ${JSON.stringify(last, null, 1)}`,
      deadline: deadline + READING_MS,
      interval: 100,
    },
  );
}

/** Outside sees the host, except for what is excluded; pods see each other. */
async function expectTraffic({ host, pod, peer }: Side): Promise<void> {
  for (const family of FAMILIES) {
    const seen = {
      outside: await seenFrom(pod, cluster.switch[family]),
      excluded: await seenFrom(pod, EXCLUDED[family]),
      peer: await seenFrom(pod, peer[family]),
    };
    expect(seen).toEqual({ outside: host[family], excluded: pod[family], peer: pod[family] });
  }
}

/** Packets with the mark of kube-proxy are left to it. */
async function expectMarkedLeftAlone({ host, pod }: Side): Promise<void> {
  await host.namespace.exec(
    "nft",
    `add table inet marker
     add chain inet marker pre { type filter hook prerouting priority mangle; }
     add rule inet marker pre meta mark set 0x4001`,
  );
  for (const family of FAMILIES) {
    expect(await seenFrom(pod, cluster.switch[family])).toBe(pod[family]);
  }
  await host.namespace.exec("nft", "delete", "table", "inet", "marker");
}

describe.each([
  ["iptables-legacy", 0],
  ["iptables-nft", 1],
] as const)("%s", (_, at) => {
  const side = () => sides[at] as Side;

  test("the rules are in this variant only, with one jump per chain and family", async () => {
    const { host, variant } = side();
    const present = await oursIn(host, variant);
    expect(present.filter((line) => /^-A (FORWARD|POSTROUTING) /.test(line))).toHaveLength(4);
    expect(await oursIn(host, variant === "nft" ? "legacy" : "nft")).toEqual([]);
    expect(await ourTables(host)).toEqual([]);
  });

  test("sources are hidden outside, kept where excluded, marked and between pods", async () => {
    await expectTraffic(side());
    await expectMarkedLeftAlone(side());
  });

  test("a host that denies forwarding lets pods through", async () => {
    const { host, variant } = side();
    await tables(host, ...bothFamilies(variant, "iptables -P FORWARD DROP"));
    await expectTraffic(side());
    await tables(host, ...bothFamilies(variant, "iptables -P FORWARD ACCEPT"));
  });

  test(
    "flushed or doubled rules are put right within the resync period",
    async () => {
      const { host, variant } = side();
      const before = await oursIn(host, variant);
      const jump = `iptables -t nat -A POSTROUTING -m comment --comment "flanneld masq" -j FLANNEL-POSTRTG`;
      const harms = [
        bothFamilies(variant, "iptables -F", "iptables -t nat -F"),
        bothFamilies(variant, ...Array.from({ length: 5 }, () => jump)),
        variant === "nft" ? ["nft flush ruleset"] : bothFamilies(variant, "iptables -t nat -D POSTROUTING 1"),
      ];
      for (const harm of harms) {
        expect(await oursIn(host, variant, harm)).not.toEqual(before);
        await expectOurs(side(), before, RESYNC_MS);
        await expectTraffic(side());
      }
    },
    TIMEOUT,
  );
});

test(
  "--iptables-resync 2: put right within 2 s",
  async () => {
    await stop();
    await start("--iptables-resync=2");
    for (const side of sides) {
      const before = await oursIn(side.host, side.variant);
      for (let round = 0; round < 3; round++) {
        await tables(side.host, ...bothFamilies(side.variant, "iptables -F", "iptables -t nat -F"));
        await expectOurs(side, before, 2_000);
      }
    }
  },
  TIMEOUT,
);

test(
  "EnableNFTables is followed while running, both ways: the rules move, nothing is left where they were",
  async () => {
    await cluster.configure(config(true));
    for (const side of sides) {
      const { host } = side;
      await until(async () => (await ourTables(host)).join() === TABLES.join(), {
        message: () => `${host.name}: no tables\n${cluster.daemons.at(-1)?.tail()}`,
      });
      for (const variant of ["legacy", "nft"] as const) await expectOurs({ ...side, variant }, [], 5_000);
      await expectTraffic(side);
      await expectMarkedLeftAlone(side);
      const before = await listTables(host);
      await host.namespace.exec("nft", "flush", "ruleset");
      expect(await ourTables(host)).toEqual([]);
      await until(async () => (await listTables(host)) === before, {
        message: async () => `${before}\nis now\n${await listTables(host)}`,
        deadline: RESYNC_MS,
      });
      await expectTraffic(side);
    }
    await cluster.configure(config(false));
    for (const side of sides) {
      await until(async () => (await ourTables(side.host)).length === 0, {
        message: () => `${side.host.name}: tables left\n${cluster.daemons.at(-1)?.tail()}`,
      });
      expect(await oursIn(side.host, side.variant)).not.toEqual([]);
      expect(await oursIn(side.host, side.variant === "nft" ? "legacy" : "nft")).toEqual([]);
      await expectTraffic(side);
    }
  },
  TIMEOUT,
);
