import type { FigureDefinition } from "../figures.ts";
import { readCpuSeconds, readMemory, untilQuiet } from "../process-usage.ts";
import { inTurns, type Scenario, type Session, type Subject } from "../scenario.ts";
import { Testbed } from "../testbed.ts";

const SIZES = [0, 5_000];
/** Megabytes, as the issue of this benchmark set them. */
const TARGETS: Readonly<Record<number, { readonly rss: number; readonly anonymous?: number }>> = {
  0: { rss: 50, anonymous: 28 },
  5000: { rss: 70 },
};
/** Peers while the idle CPU time is measured. */
const IDLE_PEERS = 1_000;
/** A window of this length holds one of each thing that is done once a minute. */
const IDLE_WINDOW_MS = 60_000;
/** From quiet until memory is read, ms. */
const SETTLE_MS = 10_000;

/** What a daemon costs that has nothing to do. */
export const memory: Scenario = {
  name: "memory",
  title: "memory at 0 and 5,000 peers; CPU while idle with 1,000 peers",
  figures: (quick) => [
    ...sizes(quick).flatMap(figuresOf),
    {
      id: "idle",
      label: `CPU of one core while idle, ${idlePeers(quick).toLocaleString("en")} peers`,
      unit: "%",
    },
  ],
  async measure(session) {
    for (const size of sizes(session.quick)) {
      await using testbed = await Testbed.create(size);
      await inTurns(session, `memory at ${size} peers`, (subject) =>
        measureMemory(session, testbed, subject),
      );
    }
    await using testbed = await Testbed.create(idlePeers(session.quick));
    await inTurns({ ...session, runs: 1 }, "idle", (subject) => measureIdle(session, testbed, subject));
  },
};

function sizes(quick: boolean): readonly number[] {
  return quick ? [0] : SIZES;
}

function idlePeers(quick: boolean): number {
  return quick ? 100 : IDLE_PEERS;
}

function figuresOf(size: number): readonly FigureDefinition[] {
  const { rss, anonymous } = TARGETS[size] ?? {};
  const peers = `${size.toLocaleString("en")} peers`;
  return [
    {
      id: `rss-${size}`,
      label: `${peers}: resident`,
      unit: "MB",
      ...(rss === undefined ? {} : { atMost: rss }),
    },
    {
      id: `anonymous-${size}`,
      label: `${peers}: of it anonymous`,
      unit: "MB",
      ...(anonymous === undefined ? {} : { atMost: anonymous }),
    },
  ];
}

async function measureMemory(session: Session, testbed: Testbed, subject: Subject): Promise<void> {
  await using host = await testbed.addHost();
  const started = host.start(subject);
  await host.converged(started);
  await started.daemon.ready;
  await untilQuiet(started.daemon.pid);
  await Bun.sleep(session.quick ? 1_500 : SETTLE_MS);
  const { rss, anonymous } = readMemory(started.daemon.pid);
  session.record(`rss-${testbed.peers}`, subject, rss);
  session.record(`anonymous-${testbed.peers}`, subject, anonymous);
}

async function measureIdle(session: Session, testbed: Testbed, subject: Subject): Promise<void> {
  await using host = await testbed.addHost();
  const started = host.start(subject);
  await host.converged(started);
  await started.daemon.ready;
  await untilQuiet(started.daemon.pid);
  const [before, from] = [readCpuSeconds(started.daemon.pid), performance.now()];
  await Bun.sleep(session.quick ? 5_000 : IDLE_WINDOW_MS);
  const [after, until] = [readCpuSeconds(started.daemon.pid), performance.now()];
  session.record("idle", subject, ((after - before) / ((until - from) / 1000)) * 100);
}
