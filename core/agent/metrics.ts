import type { StoreStats } from "../lease/stats.ts";
import type { Counts } from "../observe/counts.ts";
import type { Metric, Sample } from "../observe/metrics.ts";
import type { Observation } from "./observation.ts";

/** Samples of a family of counters, one label. */
function samples(label: string, counts: Counts | undefined): readonly Sample[] {
  return Object.entries(counts ?? {}).map(([name, value]) => ({ labels: { [label]: name }, value }));
}

/** A number the lease store counts. */
function storeCounter(name: string, help: string, pick: (stats: StoreStats) => number): Metric<Observation> {
  return {
    name,
    type: "counter",
    help,
    read: ({ store }) => (store?.stats ? pick(store.stats) : undefined),
  };
}

/** Everything `/metrics` tells, in this order. */
export const AGENT_METRICS: readonly Metric<Observation>[] = [
  {
    name: "flannel_build_info",
    type: "gauge",
    help: "Always 1; the labels tell the build.",
    labels: ["version", "commit"],
    read: ({ build }) => [{ labels: { version: build.version, commit: build.commit }, value: 1 }],
  },
  {
    name: "flannel_node_info",
    type: "gauge",
    help: "Always 1 once the node has a lease; the labels tell who it is and how it forwards.",
    labels: ["node_id", "lease", "backend", "interface"],
    read: ({ session }) => {
      if (!session) return [];
      const { identity, config, external } = session.prepared;
      const labels = {
        node_id: identity.nodeId,
        lease: session.held.lease.key,
        backend: config.backend.type,
        interface: external.name,
      };
      return [{ labels, value: 1 }];
    },
  },
  {
    name: "flannel_ready",
    type: "gauge",
    help: "Whether the node is ready: 1 or 0, as /readyz.",
    read: (observation) => Number(observation.readiness().length === 0),
  },
  {
    name: "flannel_findings",
    type: "gauge",
    help: "Findings that hold now, by code.",
    labels: ["code", "severity"],
    read: ({ health }) => {
      const groups = Map.groupBy(health.list(), ({ code, severity }) => `${code} ${severity}`);
      return [...groups].map(([key, { length }]) => {
        const [code = "", severity = ""] = key.split(" ");
        return { labels: { code, severity }, value: length };
      });
    },
  },
  {
    name: "flannel_config_revision",
    type: "gauge",
    help: "Store revision of the network config in use.",
    read: ({ session }) => session?.prepared.understood.document.revision,
  },
  {
    name: "flannel_lease_seconds_left",
    type: "gauge",
    help: "Seconds until the lease of this node ends unless it is renewed; absent for a reservation.",
    read: ({ session }) => session?.lease.secondsLeft,
  },
  {
    name: "flannel_lease_state",
    type: "gauge",
    help: "Is 1 for the state the lease of this node is in, 0 for the others.",
    labels: ["state"],
    read: ({ session }) => {
      if (!session) return [];
      const { state } = session.lease;
      return (["held", "renewal-failing", "conflict"] as const).map((each) => ({
        labels: { state: each },
        value: Number(each === state),
      }));
    },
  },
  storeCounter(
    "flannel_lease_renewals_total",
    "Successful renewals of the lease of this node.",
    (stats) => stats.renewals,
  ),
  {
    name: "flannel_peers_wanted",
    type: "gauge",
    help: "Other nodes that are to be reached.",
    read: ({ dataPath }) => dataPath.wanted,
  },
  {
    name: "flannel_peers_programmed",
    type: "gauge",
    help: "Other nodes that everything is in place for.",
    read: ({ dataPath }) => dataPath.programmed,
  },
  {
    name: "flannel_peers_failing",
    type: "gauge",
    help: "Other nodes that are not reached: refused by the data path, unusable as configured, or rejected (their lease clashes; not in flannel_peers_wanted).",
    labels: ["reason"],
    read: ({ dataPath, session }) => [
      { labels: { reason: "refused" }, value: dataPath.refused },
      { labels: { reason: "unusable" }, value: dataPath.unusable },
      { labels: { reason: "rejected" }, value: session?.peers.rejected().length ?? 0 },
    ],
  },
  {
    name: "flannel_objects_wanted",
    type: "gauge",
    help: "Objects wanted in the kernel: addresses, routes, neighbours, forwarding entries, nexthops.",
    read: ({ dataPath }) => dataPath.objects,
  },
  {
    name: "flannel_objects_failing",
    type: "gauge",
    help: "Objects that the data path refuses now.",
    read: ({ dataPath }) => dataPath.failing,
  },
  {
    name: "flannel_repairs_total",
    type: "counter",
    help: "Objects in the kernel that were missing or different and have been set right, by kind.",
    labels: ["object"],
    read: ({ dataplane }) => samples("object", dataplane.repairs),
  },
  {
    name: "flannel_rule_repairs_total",
    type: "counter",
    help: "Traffic rule sets that were missing or different and have been set right; absent where none are kept.",
    labels: ["rules"],
    read: ({ ruleRepairs }) => samples("rules", ruleRepairs?.()),
  },
  {
    name: "flannel_netlink_errors_total",
    type: "counter",
    help: "Changes that the kernel refused, by its error.",
    labels: ["error"],
    read: ({ dataplane }) => samples("error", dataplane.refusals),
  },
  {
    name: "flannel_netlink_overruns_total",
    type: "counter",
    help: "Times that kernel notices were lost, and everything was compared anew.",
    read: ({ dataplane }) => dataplane.overruns,
  },
  {
    name: "flannel_failed_looks_total",
    type: "counter",
    help: "Comparisons with the kernel that failed as a whole.",
    read: ({ dataplane }) => dataplane.failedLooks,
  },
  {
    name: "flannel_store_requests_total",
    type: "counter",
    help: "Calls to the lease store (etcd), by name, tries included.",
    labels: ["call"],
    read: ({ store }) => samples("call", store?.stats?.requests),
  },
  {
    name: "flannel_store_failures_total",
    type: "counter",
    help: "Calls to the lease store that failed, by kind of failure.",
    labels: ["kind"],
    read: ({ store }) => samples("kind", store?.stats?.failures),
  },
  {
    name: "flannel_store_request_seconds",
    type: "histogram",
    help: "How long calls to the lease store took that succeeded, by name.",
    labels: ["call"],
    read: ({ store }) =>
      Object.entries(store?.stats?.latency ?? {}).map(([call, value]) => ({ labels: { call }, value })),
  },
  storeCounter(
    "flannel_store_watch_events_total",
    "Changes of leases that came by the watch.",
    (stats) => stats.watchEvents,
  ),
  storeCounter(
    "flannel_store_reconnects_total",
    "Watches opened after the first.",
    (stats) => stats.reconnects,
  ),
  storeCounter(
    "flannel_store_relists_total",
    "Complete lists of the leases after the first.",
    (stats) => stats.relists,
  ),
  storeCounter(
    "flannel_store_bad_entries_total",
    "Keys or values among the leases that are no lease.",
    (stats) => stats.badEntries,
  ),
  {
    name: "flannel_loop_restarts_total",
    type: "counter",
    help: "How often a loop of the daemon had to be started again.",
    labels: ["loop"],
    read: ({ loops }) =>
      loops.list().map(({ name, restarts }) => ({ labels: { loop: name }, value: restarts })),
  },
  {
    name: "flannel_loop_overdue_seconds",
    type: "gauge",
    help: "Seconds since a loop of the daemon should have been heard of; above 0 /livez fails.",
    labels: ["loop"],
    read: ({ loops }) =>
      loops
        .list()
        .map(({ name, overdueSeconds }) => ({ labels: { loop: name }, value: overdueSeconds ?? 0 })),
  },
  {
    name: "process_start_time_seconds",
    type: "gauge",
    help: "When the daemon was started, seconds since 1970.",
    read: ({ startedAt }) => startedAt / 1000,
  },
  {
    name: "process_cpu_seconds_total",
    type: "counter",
    help: "CPU time of the daemon, seconds.",
    read: () => {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1e6;
    },
  },
  {
    name: "process_resident_memory_bytes",
    type: "gauge",
    help: "Resident memory of the daemon.",
    read: () => process.memoryUsage.rss(),
  },
];
