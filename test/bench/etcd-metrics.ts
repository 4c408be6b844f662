import type { Testbed } from "./testbed.ts";

/** What etcd counted so far about its clients; counters only grow. */
export interface EtcdCounts {
  /**
   * Requests by method, e.g. `KV/Range`: unary calls as such, and of streams every message that a client sent (each
   * renewal of a lease, each watch that is opened).
   */
  readonly requests: ReadonlyMap<string, number>;
  /** Events sent to watchers: one event that two watch counts twice. */
  readonly events: number;
}

/** Reads etcd's `/metrics` from inside the switch's namespace. */
export async function readEtcdCounts({ switch: on, etcd }: Testbed): Promise<EtcdCounts> {
  const script = `process.stdout.write(await (await fetch(${JSON.stringify(`${etcd.endpoint}/metrics`)})).text())`;
  const { stdout, stderr, exitCode } = await on.namespace.run([process.execPath, "-e", script]);
  if (exitCode !== 0) throw new Error(`etcd's metrics cannot be read: ${stderr}`);
  return parseEtcdCounts(stdout);
}

/** Reads the text of etcd's `/metrics` (Prometheus text format). */
export function parseEtcdCounts(text: string): EtcdCounts {
  const requests = new Map<string, number>();
  let events = 0;
  for (const line of text.split("\n")) {
    const sample = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (!sample) continue;
    const [, name = "", labels = "", value = "0"] = sample;
    // Named thus from 3.4 on; the watchers' share of all events.
    if (name === "etcd_debugging_mvcc_events_total") events = Number(value);
    if (name !== "grpc_server_msg_received_total" || Number(value) === 0) continue;
    const method = `${label(labels, "grpc_service").replace(/^etcdserverpb\./, "")}/${label(labels, "grpc_method")}`;
    requests.set(method, Number(value));
  }
  return { requests, events };
}

function label(labels: string, name: string): string {
  return new RegExp(`(?:^|,)${name}="([^"]*)"`).exec(labels)?.[1] ?? "";
}

/** What came between two readings; methods without a request are left out. */
export function differ(before: EtcdCounts, after: EtcdCounts): EtcdCounts {
  const requests = new Map<string, number>();
  for (const [method, count] of after.requests) {
    const more = count - (before.requests.get(method) ?? 0);
    if (more > 0) requests.set(method, more);
  }
  return { requests, events: after.events - before.events };
}

/** All requests of a reading. */
export function countRequests({ requests }: EtcdCounts): number {
  return [...requests.values()].reduce((sum, count) => sum + count, 0);
}

/** Renewals in a reading, whichever way a daemon renews: by keeping its etcd lease alive, or by a new one. */
export function countRenewals({ requests }: EtcdCounts): number {
  return (requests.get("Lease/LeaseKeepAlive") ?? 0) + (requests.get("Lease/LeaseGrant") ?? 0);
}
