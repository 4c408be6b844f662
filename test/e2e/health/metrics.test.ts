/**
 * Metrics move with what happens.
 *
 *   h1 (flanneld, health server) ── ext0 ─┬─ switch + etcd
 *   h2 (flanneld) ────────────────── ext0 ┘
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { AGENT_METRICS } from "../../../core/agent/metrics.ts";
import { findValue } from "../../core/observe/exposition.ts";
import { Cluster } from "../../lab/cluster.ts";
import type { Daemon } from "../../lab/daemon.ts";
import type { Host } from "../../lab/host.ts";
import { until } from "../../lab/until.ts";
import { putLeases } from "../leases.ts";
import { BLOCK_DEVICE, HEALTH_FLAG, readMetrics, TIMEOUT, untilReady } from "./readiness.ts";

const FLAGS = [HEALTH_FLAG, "--subnet-lease-ttl=10s", "--subnet-lease-renew-margin=5s"];

let cluster: Cluster;
let [h1, h2]: Host[] = [];
let daemon: Daemon;

beforeAll(async () => {
  cluster = await Cluster.create({ hosts: 2 });
  [h1, h2] = cluster.hosts;
  daemon = cluster.startDaemon(h1!, { flags: FLAGS });
  await Promise.all([daemon.ready, cluster.startDaemon(h2!).ready]);
}, TIMEOUT);
afterAll(() => cluster?.[Symbol.asyncDispose]());

const metrics = () => readMetrics(h1!);

test(
  "metrics move with what happens",
  async () => {
    // A device that cannot be made again at once, and a store that is away for a moment.
    await h1!.namespace.exec("sh", "-ec", BLOCK_DEVICE);
    await cluster.etcd.stop();
    await daemon.waitForLog(({ code }) => code === "DATAPLANE_BROKEN");
    await daemon.waitForLog(({ code }) => code === "ETCD_UNREACHABLE");
    await h1!.namespace.ip("link delete blocker");
    cluster.etcd.spawn();
    await untilReady({ host: h1!, daemon });
    const before = await metrics();
    const get = (name: string, labels = {}) => findValue(before, name, labels) ?? 0;
    for (const { name, samples } of before) {
      const declared = AGENT_METRICS.find((metric) => metric.name === name)?.labels ?? [];
      for (const { labels } of samples) {
        const { le: _, ...own } = labels;
        expect([name, ...Object.keys(own).sort()]).toEqual([name, ...declared.toSorted()]);
      }
    }
    expect(get("flannel_ready")).toBe(1);
    expect(get("flannel_lease_seconds_left")).toBeGreaterThan(0);
    expect(get("flannel_lease_seconds_left")).toBeLessThanOrEqual(10);
    expect(get("flannel_lease_state", { state: "held" })).toBe(1);
    expect(get("flannel_peers_wanted")).toBe(1);
    expect(get("flannel_peers_programmed")).toBe(1);
    // What was broken has left its traces.
    for (const name of ["flannel_store_reconnects_total", "flannel_failed_looks_total"])
      expect(get(name)).toBeGreaterThan(0);
    expect(get("flannel_store_failures_total", { kind: "unreachable" })).toBeGreaterThan(0);
    expect(get("flannel_repairs_total", { object: "link" })).toBeGreaterThan(0);

    const data = { VNI: 1, VtepMAC: "02:00:00:00:00:99" };
    await putLeases(cluster, [
      {
        key: "10.244.199.0-24",
        value: { PublicIP: "192.0.2.99", PublicIPv6: null, BackendType: "vxlan", BackendData: data },
      },
      { key: "10.244.198.0-24", value: { PublicIP: "192.0.2.98", PublicIPv6: null, BackendType: "host-gw" } },
    ]);
    const route = (await h1!.namespace.exec("ip", "route", "show", "dev", "flannel.1")).split(" ")[0]!;
    await h1!.namespace.exec("ip", "route", "delete", route);
    await h1!.namespace.exec("iptables", "-F", "FLANNEL-FWD");
    const moved = [
      ["flannel_repairs_total", { object: "route" }],
      ["flannel_rule_repairs_total", { rules: "iptables" }],
      ["flannel_lease_renewals_total", {}],
      ["flannel_store_watch_events_total", {}],
      ["flannel_store_requests_total", { call: "leaseKeepAlive" }],
      ["flannel_store_request_seconds_count", { call: "leaseKeepAlive" }],
      ["process_cpu_seconds_total", {}],
    ] as const;
    const after = await until(
      async () => {
        const now = await metrics();
        return moved.every(([name, labels]) => (findValue(now, name, labels) ?? 0) > get(name, labels))
          ? now
          : undefined;
      },
      {
        message: async () => {
          const now = await metrics();
          return moved
            .map(([name, labels]) => `${name} ${get(name, labels)} → ${findValue(now, name, labels)}`)
            .join("\n");
        },
        deadline: 20_000,
      },
    );
    expect(findValue(after, "flannel_peers_wanted")).toBe(3);
    expect(findValue(after, "flannel_peers_programmed")).toBe(2);
    expect(findValue(after, "flannel_peers_failing", { reason: "unusable" })).toBe(1);
  },
  TIMEOUT,
);
