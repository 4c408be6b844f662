import { join as path } from "node:path";
import { endpointFor } from "../../lab/switch-etcd.ts";
import { percentile } from "../figures.ts";
import { untilQuiet } from "../process-usage.ts";
import { inTurns, type Scenario } from "../scenario.ts";
import { type BenchHost, Testbed } from "../testbed.ts";

const SIZES = [0, 5_000];
/** Joins per run: the 99th percentile is the third largest. */
const JOINS = 250;
const QUICK_JOINS = 20;
const PROBE = path(import.meta.dir, "../join-probe.ts");

/** From the write of another node's lease to the route to it, in a cluster that is otherwise quiet. */
export const join: Scenario = {
  name: "join",
  title: "lease written → route present",
  figures: (quick) =>
    sizes(quick).flatMap((size) => {
      const peers = `${size.toLocaleString("en")} peers`;
      return [
        { id: `p50-${size}`, label: `${peers}: p50`, unit: "ms" } as const,
        { id: `p99-${size}`, label: `${peers}: p99`, unit: "ms", atMost: 50 } as const,
      ];
    }),
  async measure(session) {
    for (const size of sizes(session.quick)) {
      await using testbed = await Testbed.create(size);
      await inTurns(session, `joins among ${size} peers`, async (subject) => {
        await using host = await testbed.addHost();
        const started = host.start(subject);
        await host.converged(started);
        await started.daemon.ready;
        await untilQuiet(started.daemon.pid);
        const latencies = await probe(host, session.quick ? QUICK_JOINS : JOINS);
        session.record(`p50-${size}`, subject, percentile(latencies, 0.5));
        session.record(`p99-${size}`, subject, percentile(latencies, 0.99));
      });
    }
  },
};

function sizes(quick: boolean): readonly number[] {
  return quick ? [0] : SIZES;
}

async function probe({ host }: BenchHost, joins: number): Promise<readonly number[]> {
  const command = [process.execPath, PROBE, endpointFor(host), String(joins)];
  const { stdout, stderr, exitCode } = await host.namespace.run(command);
  if (exitCode !== 0) throw new Error(`the probe failed: ${stderr}`);
  return JSON.parse(stdout) as number[];
}
