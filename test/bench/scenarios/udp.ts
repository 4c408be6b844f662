import { Cluster, networkConfig, PREFIX } from "../../lab/cluster.ts";
import { ping } from "../../lab/ping.ts";
import { until } from "../../lab/until.ts";
import type { FigureDefinition, Unit } from "../figures.ts";
import { ProxyProgram, startProxies } from "../proxy-pair.ts";
import type { Scenario, Session, Subject } from "../scenario.ts";
import { endOf, type TunnelEnd } from "../tunnel-end.ts";
import { measurePackets, measureRoundTrip, measureTcp, type Tunnel } from "../tunnel-load.ts";

const SECONDS = 8;
const QUICK_SECONDS = 2;
/** Further nodes of the cluster, so that the tables are not of one entry. */
const OTHERS = 100;

/** What is measured on either side, and what the ratio of ours to the yardstick has to be. */
const MEASURES: readonly (readonly [
  id: string,
  label: string,
  unit: Unit,
  bound?: Partial<FigureDefinition>,
])[] = [
  ["tcp", "one TCP stream", "Gbit/s", { atLeast: 4 }],
  ["tcp4", "four TCP streams", "Gbit/s", { atLeast: 5 }],
  ["both", "both directions at once", "Gbit/s", { atLeast: 4 }],
  ["packets", "UDP packets of 64 bytes", "k/s", { atLeast: 1 }],
  ["cpu", "CPU of both daemons, one stream", "CPU s/Gbit", { atMost: 0.25 }],
];

/**
 * The udp backend beside a proxy in C that moves one packet per system call, on the same two hosts in turns: the
 * smallest thing that does the job, and the shape of upstream's own.
 */
export const udp: Scenario = {
  name: "udp",
  title: "udp backend beside a one-packet proxy in C",
  figures: () => [
    ...MEASURES.flatMap(([id, label, unit, bound = {}]): FigureDefinition[] => [
      { id: `${id}-ours`, label, unit, oursOnly: true },
      { id: `${id}-proxy`, label: "  proxy in C", unit, oursOnly: true },
      { id: `${id}-ratio`, label: "  ours ÷ proxy", unit: "×", oursOnly: true, ...bound },
    ]),
    { id: "ping-ours", label: "least ping round trip", unit: "µs", oursOnly: true },
    { id: "ping-proxy", label: "  proxy in C", unit: "µs", oursOnly: true },
    { id: "ping-more", label: "  ours − proxy", unit: "µs", oursOnly: true, atMost: 8 },
  ],
  async measure(session) {
    const [ours] = session.subjects;
    if (!ours) throw new Error("no executable");
    using program = await ProxyProgram.compile();
    for (let run = 0; run < session.runs; run++) {
      // Fresh hosts for each run; the two sides of a ratio are measured right after each other.
      await using cluster = await Cluster.create({ config: networkConfig("v4", { Type: "udp" }) });
      for (let n = 0; n < OTHERS; n++) {
        const lease = JSON.stringify({ PublicIP: `198.51.100.${n + 1}` });
        await cluster.etcd.ctl("put", `${PREFIX}/subnets/10.244.${n + 1}.0-24`, lease);
      }
      session.progress(`run ${run + 1}/${session.runs}`);
      await measureRun(session, ours, cluster, program);
    }
  },
};

async function measureRun(
  session: Session,
  ours: Subject,
  cluster: Cluster,
  program: ProxyProgram,
): Promise<void> {
  const daemons = await cluster.startDaemons({ file: ours.file });
  const ends = (await Promise.all(cluster.hosts.map(endOf))) as [TunnelEnd, TunnelEnd];
  await untilReached(ends);
  const mine = await measureAll(session, { ends, pids: daemons.map(({ pid }) => pid) });
  for (const daemon of daemons) await daemon.stop();
  for (const { namespace } of cluster.hosts) await namespace.ip("link delete flannel0");
  const proxies = await startProxies(program, ends, "10.244.0.0/16");
  await untilReached(ends);
  const theirs = await measureAll(session, { ends, pids: proxies.map(({ pid }) => pid) });
  for (const id of Object.keys(mine)) {
    const [a, b] = [mine[id] ?? Number.NaN, theirs[id] ?? Number.NaN];
    session.record(`${id}-ours`, ours, a);
    session.record(`${id}-proxy`, ours, b);
    session.record(id === "ping" ? "ping-more" : `${id}-ratio`, ours, id === "ping" ? a - b : a / b);
  }
}

async function measureAll({ quick }: Session, tunnel: Tunnel): Promise<Readonly<Record<string, number>>> {
  const seconds = quick ? QUICK_SECONDS : SECONDS;
  const one = await measureTcp(tunnel, seconds);
  const four = await measureTcp(tunnel, seconds, "--parallel", "4");
  const both = await measureTcp(tunnel, seconds, "--bidir");
  return {
    tcp: one.gigabitsPerSecond,
    tcp4: four.gigabitsPerSecond,
    both: both.gigabitsPerSecond,
    packets: await measurePackets(tunnel, seconds),
    cpu: one.cpuPerGigabit,
    // Last, on both sides: what runs for the first time is not compiled yet.
    ping: await measureRoundTrip(tunnel, quick ? 200 : 1_000),
  };
}

async function untilReached([from, to]: readonly [TunnelEnd, TunnelEnd]): Promise<void> {
  await until(async () => (await ping(from.host, to.address, { count: 1, deadline: 500 })).received === 1, {
    message: () => `${to.address} is not reached`,
    deadline: 20_000,
  });
}
