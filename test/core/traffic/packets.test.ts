import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { Health } from "../../../core/observe/health.ts";
import { silentLog } from "../../../core/observe/log.ts";
import type { TrafficKind } from "../../../core/traffic/intent.ts";
import { TrafficManager } from "../../../core/traffic/manager.ts";
import { connect, Namespace } from "../../lab/namespace.ts";
import { ping } from "../../lab/ping.ts";
import { INTENT, openMachine } from "./machine.ts";

setDefaultTimeout(60_000);

async function load(ns: Namespace, ruleset: string): Promise<void> {
  const { exitCode, stderr } = await ns.run(["nft", "-f", "-"], { input: ruleset });
  if (exitCode !== 0) throw new Error(stderr);
}

/**
 *     pod 10.244.1.2 ── p0 (host) ext0 192.0.2.1 ── far 192.0.2.9, 198.51.100.9 (excluded)
 *     fd00:10:244:2f::2          2001:db8::1         2001:db8::9, 2001:db8:99::9 (excluded)
 *                                                    10.244.2.2, fd00:10:244:30::2: a pod of another node
 *
 * The far side counts packets by the source address they come with.
 */
async function openTopology() {
  await using stack = new AsyncDisposableStack();
  const machine = stack.use(await openMachine("pk"));
  const pod = stack.use(await Namespace.create("pkpod"));
  const far = stack.use(await Namespace.create("pkfar"));
  const host = machine.ns;
  await connect([host, "p0"], [pod, "eth0"]);
  await connect([host, "ext0"], [far, "eth0"]);
  await host.exec(
    "sh",
    "-ec",
    "echo 1 > /proc/sys/net/ipv4/ip_forward; echo 1 > /proc/sys/net/ipv6/conf/all/forwarding",
  );
  await host.ipBatch(
    "address add 10.244.1.1/24 dev p0",
    "address add fd00:10:244:2f::1/64 dev p0 nodad",
    "address add 192.0.2.1/24 dev ext0",
    "address add 2001:db8::1/64 dev ext0 nodad",
    "route add default via 192.0.2.9",
    "route add default via 2001:db8::9",
  );
  await pod.ipBatch(
    "address add 10.244.1.2/24 dev eth0",
    "address add fd00:10:244:2f::2/64 dev eth0 nodad",
    "route add default via 10.244.1.1",
    "route add default via fd00:10:244:2f::1",
  );
  await far.ipBatch(
    "address add 192.0.2.9/24 dev eth0",
    "address add 198.51.100.9/32 dev eth0",
    "address add 10.244.2.2/32 dev eth0",
    "address add 2001:db8::9/64 dev eth0 nodad",
    "address add 2001:db8:99::9/128 dev eth0 nodad",
    "address add fd00:10:244:30::2/128 dev eth0 nodad",
    "route add 10.244.1.0/24 via 192.0.2.1",
    "route add fd00:10:244:2f::/64 via 2001:db8::1",
  );
  await load(
    far,
    `table inet count {
      counter pod { }
      counter host { }
      chain in {
        type filter hook input priority 0
        icmp type echo-request ip saddr 10.244.1.2 counter name pod
        icmp type echo-request ip saddr 192.0.2.1 counter name host
        icmpv6 type echo-request ip6 saddr fd00:10:244:2f::2 counter name pod
        icmpv6 type echo-request ip6 saddr 2001:db8::1 counter name host
      }
    }`,
  );
  stack.move();
  return {
    machine,
    host,
    /** Who the far side takes the sender for, "" when nothing arrives and is answered. */
    async seen(from: "pod" | "host", to: string): Promise<string> {
      await far.exec("nft", "reset", "counters");
      const { received } = await ping({ namespace: from === "pod" ? pod : host }, to, { count: 1 });
      const listed = await far.json("nft", "-j", "list", "counters");
      const counters = listed.nftables.flatMap(({ counter }) =>
        counter && counter.packets > 0 ? counter.name : [],
      );
      return received === 1 ? counters.join() : "";
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([
        machine[Symbol.asyncDispose](),
        pod[Symbol.asyncDispose](),
        far[Symbol.asyncDispose](),
      ]);
    },
  };
}

describe.each([
  ["nftables", "nftables", /^$/],
  ["iptables-nft", "iptables", /legacy/],
  ["iptables-legacy", "iptables", /nft|^ip6?tables(-save|-restore)?$/],
] as const)("packets through %s", (_, kind: TrafficKind, missing) => {
  test("keep or lose their source, and pass, as they should", async () => {
    await using topology = await openTopology();
    const { machine, host, seen } = topology;
    const manager = new TrafficManager({
      host: { ...machine.host, has: (command) => !missing.test(command) && machine.host.has(command) },
      health: new Health(silentLog),
      log: silentLog,
      resync: 5_000,
    });
    const outside = ["192.0.2.9", "2001:db8::9"];
    const excluded = ["198.51.100.9", "2001:db8:99::9"];
    const elsewhere = ["10.244.2.2", "fd00:10:244:30::2"];
    const all = async (from: "pod" | "host", to: readonly string[]) => {
      const result: string[] = [];
      for (const address of to) result.push(await seen(from, address));
      return result;
    };
    expect(await all("pod", outside)).toEqual(["pod", "pod"]);

    await manager.apply({
      ...INTENT,
      kind,
      ipv4: { ...INTENT.ipv4!, masqExclude: ["198.51.100.0/24"] },
      ipv6: { ...INTENT.ipv6!, masqExclude: ["2001:db8:99::/48"] },
    });
    expect(await all("pod", outside)).toEqual(["host", "host"]);
    expect(await all("pod", excluded)).toEqual(["pod", "pod"]);
    expect(await all("pod", elsewhere)).toEqual(["pod", "pod"]);

    await load(
      host,
      "table inet marker { chain pre { type filter hook prerouting priority -150; policy accept; meta mark set 0x4001; }; }\n",
    );
    expect(await all("pod", outside)).toEqual(["pod", "pod"]);
    await host.exec("nft", "delete", "table", "inet", "marker");
    expect(await all("pod", outside)).toEqual(["host", "host"]);

    if (kind === "nftables") return;
    const denied = missing.test("iptables-nft") ? "legacy" : "nft";
    for (const command of ["iptables", "ip6tables"]) {
      await host.exec(`${command}-${denied}`, "-P", "FORWARD", "DROP");
    }
    expect(await all("pod", outside)).toEqual(["host", "host"]);
    await manager.apply({ ...INTENT, kind, forward: false });
    expect(await all("pod", outside)).toEqual(["", ""]);
  });
});
