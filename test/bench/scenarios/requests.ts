import { countRenewals, countRequests, differ, type EtcdCounts, readEtcdCounts } from "../etcd-metrics.ts";
import { untilQuiet } from "../process-usage.ts";
import type { Scenario, Session, Subject } from "../scenario.ts";
import { type BenchHost, Testbed } from "../testbed.ts";

/** Size of the cluster that the figures are told for. */
const NODES = 5_000;
/** A lease of 24 h that is renewed an hour before its end: flannel's defaults. */
const RENEWALS_PER_DAY = 24 / 23;
const SECONDS_PER_DAY = 86_400;
/** The other node's renewals come once a minute (see {@link hasten}). */
const WINDOW_MS = 75_000;
const QUICK_WINDOW_MS = 15_000;

/**
 * What a cluster at rest asks of etcd. Counted by etcd itself in three small clusters: 3 nodes that have nothing to
 * renew, and 1 and 3 nodes that renew all the time. Of the latter two the difference is what nodes do because another
 * one renewed; that part grows with the cluster.
 */
export const requests: Scenario = {
  name: "requests",
  title: "etcd requests and watch events per node and day",
  figures: () => [
    { id: "idle", label: "requests apart from renewals", unit: "per day" },
    {
      id: "requests",
      label: `requests among ${NODES.toLocaleString("en")} nodes that renew`,
      unit: "per day",
    },
    {
      id: "events",
      label: `watch events among ${NODES.toLocaleString("en")} nodes that renew`,
      unit: "per day",
      atMost: 0,
    },
  ],
  async measure(session) {
    session.note(
      `Counted by etcd over ${windowOf(session) / 1000} s with hastened renewals; scaled to ` +
        `${RENEWALS_PER_DAY.toFixed(2)} renewals per node and day.`,
    );
    for (const subject of session.subjects) await measureSubject(session, subject);
  },
};

async function measureSubject(session: Session, subject: Subject): Promise<void> {
  const name = subject.ours ? "ours" : "other";
  session.progress(`counting requests for ${windowOf(session) / 1000} s, ${name}`);
  const window = windowOf(session);
  const [idle, one, three] = await Promise.all([
    watchCluster(subject, 3, [], window),
    watchCluster(subject, 1, hasten(subject), window),
    watchCluster(subject, 3, hasten(subject), window),
  ]);
  session.note(`${name}, 3 nodes at rest: ${describe(idle)}`);
  session.note(`${name}, 1 node that renews: ${describe(one)}`);
  session.note(`${name}, 3 nodes that renew: ${describe(three)}`);
  const perDay = (countRequests(idle) / 3) * (SECONDS_PER_DAY / (window / 1000));
  session.record("idle", subject, perDay);
  const [renewals1, renewals3] = [countRenewals(one), countRenewals(three)];
  if (renewals1 === 0 || renewals3 === 0) return;
  const scaled = (alone: number, ofThree: number) =>
    RENEWALS_PER_DAY * (alone + ((NODES - 1) * Math.max(0, ofThree - alone)) / 2);
  session.record(
    "requests",
    subject,
    perDay + scaled(countRequests(one) / renewals1, countRequests(three) / renewals3),
  );
  session.record("events", subject, scaled(one.events / renewals1, three.events / renewals3));
}

function windowOf({ quick }: Session): number {
  return quick ? QUICK_WINDOW_MS : WINDOW_MS;
}

/** Flags that make a daemon renew often: ours every 8 to 10 s, flannel (with its 24 h lease) once a minute. */
function hasten({ ours }: Subject): readonly string[] {
  return ours
    ? ["--subnet-lease-ttl=30s", "--subnet-lease-renew-margin=20s"]
    : ["--subnet-lease-renew-margin=1439"];
}

/** What `nodes` daemons ask of their etcd within `window` ms once they have come to rest. */
async function watchCluster(
  subject: Subject,
  nodes: number,
  flags: readonly string[],
  window: number,
): Promise<EtcdCounts> {
  await using testbed = await Testbed.create(0);
  await using hosts = new AsyncDisposableStack();
  const started = [];
  for (let n = 1; n <= nodes; n++) {
    const host: BenchHost = hosts.use(await testbed.addHost(n));
    started.push(host.start(subject, { flags }));
  }
  for (const { daemon } of started) {
    await daemon.ready;
    await untilQuiet(daemon.pid);
  }
  const before = await readEtcdCounts(testbed);
  await Bun.sleep(window);
  return differ(before, await readEtcdCounts(testbed));
}

function describe(counts: EtcdCounts): string {
  const methods = [...counts.requests].map(([method, count]) => `${method} ${count}`);
  return `${methods.join(", ") || "no request"}; ${counts.events} watch events`;
}
