import type { FigureDefinition } from "../figures.ts";
import { readCpuSeconds, untilQuiet } from "../process-usage.ts";
import { inTurns, type Scenario, type Session, type Subject } from "../scenario.ts";
import { type BenchHost, Testbed } from "../testbed.ts";

const SIZES = [1_000, 5_000, 20_000];
const QUICK_SIZES = [500];
/** Seconds, as the issue of this benchmark set them. */
const TARGETS: Readonly<Record<number, { readonly time: number; readonly cpu?: number }>> = {
  5000: { time: 0.8, cpu: 0.7 },
  20000: { time: 2.0 },
};

/**
 * Cold: an empty host, from the start of the process until the kernel has a route to every peer. Warm: the daemon is
 * stopped and started again over its own data plane; "until quiet" is all it spends before it comes to rest.
 */
export const convergence: Scenario = {
  name: "convergence",
  title: "start → all routes, cold and warm, with CPU time",
  figures: (quick) => sizes(quick).flatMap(figuresOf),
  async measure(session) {
    for (const size of sizes(session.quick)) {
      session.progress(`writing ${size} leases`);
      await using testbed = await Testbed.create(size);
      await inTurns(session, `${size} leases`, async (subject) => {
        await using host = await testbed.addHost();
        await measureCold(session, subject, host, size);
        await measureWarm(session, subject, host, size);
      });
    }
  },
};

function sizes(quick: boolean): readonly number[] {
  return quick ? QUICK_SIZES : SIZES;
}

function figuresOf(size: number): readonly FigureDefinition[] {
  const { time, cpu } = TARGETS[size] ?? {};
  const leases = size.toLocaleString("en");
  return [
    {
      id: `cold-${size}`,
      label: `${leases}: start → all routes`,
      unit: "s",
      ...(time === undefined ? {} : { atMost: time }),
    },
    {
      id: `cold-cpu-${size}`,
      label: `${leases}: CPU until all routes`,
      unit: "s",
      ...(cpu === undefined ? {} : { atMost: cpu }),
    },
    { id: `cold-ready-${size}`, label: `${leases}: start → READY`, unit: "s" },
    { id: `cold-quiet-${size}`, label: `${leases}: CPU until quiet`, unit: "s" },
    { id: `warm-${size}`, label: `${leases}: restart → READY`, unit: "s" },
    { id: `warm-quiet-${size}`, label: `${leases}: restart, CPU until quiet`, unit: "s" },
  ];
}

async function measureCold(session: Session, subject: Subject, host: BenchHost, size: number): Promise<void> {
  const started = host.start(subject);
  const { daemon, at } = started;
  const done = await host.converged(started);
  session.record(`cold-cpu-${size}`, subject, readCpuSeconds(daemon.pid));
  session.record(`cold-${size}`, subject, (done - at) / 1000);
  session.record(`cold-ready-${size}`, subject, (await daemon.ready) / 1000);
  session.record(`cold-quiet-${size}`, subject, await untilQuiet(daemon.pid));
  await host.verify();
  await daemon.stop();
}

async function measureWarm(session: Session, subject: Subject, host: BenchHost, size: number): Promise<void> {
  const { daemon } = host.start(subject);
  session.record(`warm-${size}`, subject, (await daemon.ready) / 1000);
  session.record(`warm-quiet-${size}`, subject, await untilQuiet(daemon.pid));
  await host.verify();
  await daemon.stop();
}
