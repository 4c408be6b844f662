/**
 * What the network config says about traffic rules alone is applied on a running node without its backend noticing:
 * with the backend that would pause most when its session is replaced.
 *
 *   pod ── cni0 ── h1, h2 ── ext0 ── switch + etcd
 */
import { expect, test } from "bun:test";
import { Cluster, networkConfig } from "../lab/cluster.ts";
import { PingFlow } from "../lab/ping-flow.ts";
import { until } from "../lab/until.ts";

const TIMEOUT = 60_000;
const EXCLUDED = "192.168.77.0/24";

test(
  "MasqExclude and EnableNFTables change under traffic: the rules follow, no packet is lost",
  async () => {
    const backend = { Type: "udp" };
    await using cluster = await Cluster.create({ hosts: 2, config: networkConfig("v4", backend) });
    const daemons = await cluster.startDaemons({ flags: ["--ip-masq"] });
    const [p1, p2] = await cluster.addPods();
    await using flow = await PingFlow.start(p1!, p2!.ipv4!, { rate: 50 });
    await flow.expectAnswers(20);
    for (const [change, command] of [
      [{ MasqExclude: [EXCLUDED] }, ["iptables-save", "-t", "nat"]],
      [{ MasqExclude: [EXCLUDED], EnableNFTables: true }, ["nft", "list", "ruleset"]],
    ] as const) {
      await cluster.configure({ ...networkConfig("v4", backend), ...change });
      for (const host of cluster.hosts) {
        await until(async () => (await host.namespace.exec(...command)).includes(EXCLUDED), {
          message: () => `${command.join(" ")} never showed ${EXCLUDED}\n${daemons[0]!.tail()}`,
          deadline: 10_000,
        });
      }
      await flow.expectAnswers(20);
    }
    for (const host of cluster.hosts)
      await until(async () => !(await host.namespace.exec("iptables-save", "-t", "nat")).includes(EXCLUDED), {
        message: "the rules of iptables stayed",
        deadline: 10_000,
      });
    const { lost } = await flow.stop();
    expect(lost).toBe(0);
    // A next change of the backend's own options is judged by the config in use, not by the first one.
    await cluster.configure(networkConfig("v4", backend));
    for (const host of cluster.hosts)
      await until(async () => !(await host.namespace.exec("nft", "list", "ruleset")).includes(EXCLUDED), {
        message: `${EXCLUDED} stayed excluded`,
        deadline: 10_000,
      });
  },
  TIMEOUT,
);
