/**
 * Restarts, polite and hard, are invisible to pods: nothing is lost, and nothing leaves under a pod's own address.
 *
 *   pod ── cni0 ── h1 (restarted) ── ext0 ─┬─ switch + etcd, the world outside
 *   pod ── cni0 ── h2 ──────────────  ext0 ─┘
 */
import { expect, test } from "bun:test";
import { Cluster, networkConfig } from "../lab/cluster.ts";
import type { Host } from "../lab/host.ts";
import { expectInSync } from "../lab/oracle.ts";
import { PingFlow } from "../lab/ping-flow.ts";
import type { Pod } from "../lab/pod.ts";
import { until } from "../lab/until.ts";
import { Listener, routeOutside, seenFrom } from "./outside.ts";

const RESTARTS = 20;
/** Time between two new flows of the pod to the world outside, ms. */
const FLOW_MS = 20;
const POD_NETWORK = { ip: "10.244.0.0/16", ip6: "fd00:10:244::/48" } as const;

test(`${RESTARTS} restarts of a node with traffic, its rules moving from iptables to nftables halfway`, async () => {
  const config = networkConfig("dual");
  await using cluster = await Cluster.create({ hosts: 2, family: "dual", config });
  const [h1, h2] = cluster.hosts as [Host, Host];
  const options = { flags: ["--ip-masq"], env: { XTABLES_LOCKFILE: `${h1.directory}/xtables.lock` } };
  let daemon = cluster.startDaemon(h1, options);
  await Promise.all([daemon.ready, cluster.startDaemon(h2).ready]);
  const [p1, p2] = (await cluster.addPods()) as [Pod, Pod];
  // A pod that kept its address would be answered: the sender's address is all that tells.
  await routeOutside(h1);
  await cluster.switch.namespace.exec("nft", unmasqueradedCounters());
  using outside = await Listener.open(cluster.switch);
  await using between = await PingFlow.start(p1, p2.ipv4, { rate: 100 });
  await using outward = await PingFlow.start(p1, cluster.switch.ipv6, { rate: 100 });
  await using fresh = startFreshFlows(p1, [cluster.switch.ipv4, cluster.switch.ipv6]);

  for (let round = 0; round < RESTARTS; round++) {
    // Whether the old daemon still follows the config, or stops in the middle of it, is left to chance.
    if (round === RESTARTS / 2) await cluster.configure({ ...config, EnableNFTables: true });
    await daemon.stop(round % 2 === 0 ? "SIGTERM" : "SIGKILL");
    daemon = cluster.startDaemon(h1, options);
    await daemon.ready;
  }
  await expectInSync(cluster.hosts, cluster.etcd);
  // Readiness does not wait for the rules of the other kind to go: every daemon but the last was ended before that.
  await until(
    async () => {
      const tables = await h1.namespace.exec("nft", "list", "tables");
      const saved = await h1.namespace.exec("iptables-save");
      return tables.includes("table ip flannel-ipv4\n") && !saved.includes("FLANNEL-");
    },
    { message: "the rules have moved to nftables", deadline: 20_000 },
  );

  for (const flow of [between, outward]) {
    const report = await flow.stop();
    expect(report).toMatchObject({ lost: 0, duplicates: 0 });
    expect(report.sent).toBeGreaterThan(RESTARTS);
  }
  const { asked, unanswered } = await fresh.stop();
  expect({ unanswered, many: asked > 10 * RESTARTS }).toEqual({ unanswered: 0, many: true });
  expect([...new Set(outside.senders)].sort()).toEqual([h1.ipv4, h1.ipv6].sort());
  expect(await unmasqueraded(cluster)).toBe(0);
}, 90_000);

/** Begins flow after flow, until stopped: the rules are not asked again about a known one. */
function startFreshFlows(from: Pod, addresses: readonly string[]) {
  const answers: Promise<string>[] = [];
  let running = true;
  const sending = (async () => {
    while (running) {
      for (const address of addresses) answers.push(seenFrom(from, address));
      await Bun.sleep(FLOW_MS);
    }
  })();
  const stop = async () => {
    running = false;
    await sending;
    const seen = await Promise.all(answers);
    return { asked: seen.length, unanswered: seen.filter((address) => address === "").length };
  };
  return { stop, [Symbol.asyncDispose]: async () => void (await stop()) };
}

/** Counts what reaches the world outside under the address of a pod, whatever it is. */
function unmasqueradedCounters(): string {
  return [
    "add table inet leaks",
    "add counter inet leaks seen",
    "add chain inet leaks input { type filter hook input priority 0; }",
    ...Object.entries(POD_NETWORK).map(
      ([family, network]) => `add rule inet leaks input ${family} saddr ${network} counter name seen`,
    ),
  ].join("\n");
}

async function unmasqueraded(cluster: Cluster): Promise<number | undefined> {
  const { nftables } = await cluster.switch.namespace.json(
    "nft",
    "-j",
    "list",
    "counters",
    "table",
    "inet",
    "leaks",
  );
  return nftables.flatMap(({ counter }) => counter?.packets ?? [])[0];
}
