import { Cluster, networkConfig } from "../../lab/cluster.ts";
import { ping } from "../../lab/ping.ts";
import { until } from "../../lab/until.ts";
import { readMemory } from "../process-usage.ts";
import type { Scenario } from "../scenario.ts";
import { endOf } from "../tunnel-end.ts";
import { measureTcp } from "../tunnel-load.ts";

/** Ten minutes under load, in ten pieces; memory of the first is where counting begins. */
const PIECES = 10;
const SECONDS = 60;
const QUICK_SECONDS = 1;

/** Memory of the udp backend under load: it has to stay what it is. */
export const udpSoak: Scenario = {
  name: "udp-soak",
  title: "udp backend under load for ten minutes",
  figures: () => [
    { id: "anonymous", label: "anonymous memory after a minute", unit: "MB", oursOnly: true },
    { id: "growth", label: "  growth until the end", unit: "MB", oursOnly: true, atMost: 5 },
    { id: "gigabits", label: "both directions at once", unit: "Gbit/s", oursOnly: true },
  ],
  async measure({ subjects, quick, record, progress }) {
    const [ours] = subjects;
    if (!ours) throw new Error("no executable");
    await using cluster = await Cluster.create({ config: networkConfig("v4", { Type: "udp" }) });
    const daemons = await cluster.startDaemons({ file: ours.file });
    const [from, to] = await Promise.all(cluster.hosts.map(endOf));
    if (!from || !to) throw new Error("two hosts");
    await until(async () => (await ping(from.host, to.address, { count: 1, deadline: 500 })).received === 1, {
      message: () => `${to.address} is not reached`,
    });
    const tunnel = { ends: [from, to] as const, pids: daemons.map(({ pid }) => pid) };
    const memory = () => Math.max(...tunnel.pids.map((pid) => readMemory(pid).anonymous));
    let first = Number.NaN;
    for (let piece = 0; piece < PIECES; piece++) {
      progress(`minute ${piece + 1}/${PIECES}`);
      const { gigabitsPerSecond } = await measureTcp(tunnel, quick ? QUICK_SECONDS : SECONDS, "--bidir");
      record("gigabits", ours, gigabitsPerSecond);
      if (piece === 0) first = memory();
    }
    record("anonymous", ours, first);
    record("growth", ours, memory() - first);
  },
};
