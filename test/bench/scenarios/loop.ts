import { join } from "node:path";
import type { Daemon } from "../../lab/daemon.ts";
import { putPeers } from "../leases.ts";
import { longestBlock, readLoopBlocks } from "../loop-blocks.ts";
import { untilQuiet } from "../process-usage.ts";
import type { Scenario, Session, Subject } from "../scenario.ts";
import { Testbed } from "../testbed.ts";

const SIZES = [0, 5_000];
const QUICK_SIZES = [500];
const PROBE = join(import.meta.dir, "../loop-probe.ts");
/** Leases that arrive at once after the start. */
const BURST = 1_000;
/** ms; a target for all but the time until the lease, in which modules are loaded. */
const LONGEST = 25;
/** Holds one of each thing that is done once a minute. */
const IDLE_MS = 62_000;

/** The longest time the daemon's event loop did not turn, by phases of its life; seen from inside. */
export const loop: Scenario = {
  name: "loop",
  title: "longest block of the event loop",
  figures: (quick) =>
    sizes(quick).flatMap((size) => {
      const at = `${size.toLocaleString("en")} leases:`;
      const common = { unit: "ms", oursOnly: true } as const;
      return [
        { ...common, id: `start-${size}`, label: `${at} until the lease (loading, list)` },
        { ...common, id: `ready-${size}`, label: `${at} from the lease to READY`, atMost: LONGEST },
        { ...common, id: `idle-${size}`, label: `${at} a minute after READY`, atMost: LONGEST },
        { ...common, id: `burst-${size}`, label: `${at} 1,000 leases more at once`, atMost: LONGEST },
      ];
    }),
  async measure(session) {
    for (const size of sizes(session.quick)) {
      await using testbed = await Testbed.create(size);
      for (const subject of session.subjects.filter(({ ours }) => ours)) {
        session.progress(`event loop with ${size} leases`);
        await measureLoop(session, testbed, subject);
      }
    }
    session.note("Time that the thread waited for a CPU is not counted. One run.");
  },
};

function sizes(quick: boolean): readonly number[] {
  return quick ? QUICK_SIZES : SIZES;
}

async function measureLoop(session: Session, testbed: Testbed, subject: Subject): Promise<void> {
  await using host = await testbed.addHost();
  const file = join(host.host.directory, "loop-probe.jsonl");
  const env = { BUN_OPTIONS: `--preload ${PROBE}`, LOOP_PROBE_FILE: file };
  const { daemon } = host.start(subject, { env });
  await daemon.ready;
  await Bun.sleep(session.quick ? 3_000 : IDLE_MS);
  const burst = Date.now();
  await putPeers(testbed.etcd, testbed.peers, BURST);
  await untilQuiet(daemon.pid);
  await daemon.stop();
  const blocks = readLoopBlocks(file);
  const [leased, ready] = [timeOf(daemon, /^lease \d/), timeOf(daemon, /^ready$/)];
  const record = (phase: string, from: number, to: number) =>
    session.record(`${phase}-${testbed.peers}`, subject, longestBlock(blocks, from, to));
  record("start", 0, leased);
  record("ready", leased, ready);
  record("idle", ready, burst);
  record("burst", burst, Number.POSITIVE_INFINITY);
}

/** When the daemon logged the line, ms since the epoch. */
function timeOf(daemon: Daemon, message: RegExp): number {
  const time = daemon.lines.find(({ msg }) => message.test(msg))?.time;
  if (time === undefined) throw new Error(`the daemon logged no line like ${message}\n${daemon.tail()}`);
  return Date.parse(time);
}
