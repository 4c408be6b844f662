import { expect } from "bun:test";
import type { Cloud, CounterpartRoute } from "../lab/cloud/counterpart.ts";
import { problems } from "../lab/cloud/listener.ts";
import { Cluster, networkConfig } from "../lab/cluster.ts";
import type { Daemon } from "../lab/daemon.ts";
import type { Host } from "../lab/host.ts";
import type { Family } from "../lab/segment.ts";
import { readSubnetFile } from "../lab/subnet-file.ts";
import type { Switch } from "../lab/switch.ts";
import { until } from "../lab/until.ts";
import { readStatus } from "./ask.ts";

/** A cluster whose hosts are instances of a cloud. */
export interface CloudCluster<C extends Cloud> extends AsyncDisposable {
  readonly cluster: Cluster;
  readonly cloud: C;
  readonly hosts: readonly Host[];
  /** Each host's name as a next hop. */
  readonly targets: readonly string[];
  /** Starts the daemon of a host; not awaited. */
  start(host?: Host): Daemon;
}

/** Permissions that all calls of this process needed, by backend. */
export const needed = new Map<string, Set<string>>();

/** For one test, ms. */
export const TIMEOUT = 90_000;

export interface CloudClusterOptions {
  readonly hosts?: number;
  readonly family?: Family;
  /** Added to the counterpart's own. */
  readonly backend?: Readonly<Record<string, unknown>>;
  /** Added to those of every daemon. */
  readonly flags?: readonly string[];
}

/** Lays out a cluster in a cloud. */
export async function openCloud<C extends Cloud>(
  open: (on: Switch) => C | Promise<C>,
  { hosts = 1, family = "v4", backend = {}, flags = [] }: CloudClusterOptions = {},
): Promise<CloudCluster<C>> {
  await using stack = new AsyncDisposableStack();
  const cluster = stack.use(await Cluster.create({ hosts, family, config: null }));
  const cloud = stack.use(await open(cluster.switch));
  await cluster.configure(networkConfig(family, { ...cloud.backend, ...backend }));
  const targets: string[] = [];
  for (const host of cluster.hosts) targets.push(await cloud.join(host));
  problems.length = 0;
  const done = stack.move();
  return {
    cluster,
    cloud,
    hosts: cluster.hosts,
    targets,
    start: (host = cluster.hosts[0]!) =>
      cluster.startDaemon(host, { flags: ["--healthz-port=8081", ...flags], env: cloud.env(host) }),
    [Symbol.asyncDispose]: async () => {
      const type = String(cloud.backend.Type);
      const permissions = cloud.calls.flatMap((call) => cloud.permissionsOf(call));
      needed.set(type, new Set([...(needed.get(type) ?? []), ...permissions]));
      await done.disposeAsync();
      expect(problems).toEqual([]);
    },
  };
}

/** The subnet of a host whose daemon is ready: `10.244.7.0/24`. */
export async function subnetOf(host: Host): Promise<string> {
  const { subnet } = await readSubnetFile(host.subnetFile);
  return (subnet ?? "").replace(/\.1\/24$/, ".0/24");
}

/** Codes that keep a host from being ready. */
export async function reasonsOf(host: Host): Promise<readonly string[]> {
  return (await readStatus(host)).reasons.map(({ code }) => code);
}

/** Waits until the host's finding of that code shows; returns its text and what to do. */
export function finding(host: Host, code: string): Promise<{ readonly text: string; readonly fix: string }> {
  return until(async () => (await readStatus(host)).findings.find((each) => each.code === code), {
    message: async () => `${code}: ${JSON.stringify((await readStatus(host)).findings)}`,
    deadline: 40_000,
    interval: 100,
  });
}

/** Waits until a host is ready. */
export function untilReady(host: Host, deadline = 40_000): Promise<unknown> {
  return until(async () => (await reasonsOf(host)).length === 0, {
    message: async () => JSON.stringify(await readStatus(host)),
    deadline,
    interval: 100,
  });
}

/** Routes as text, for comparison. */
export function show(routes: readonly CounterpartRoute[]): string[] {
  return routes.map(({ dst, target }) => `${dst} → ${target}`).sort();
}
