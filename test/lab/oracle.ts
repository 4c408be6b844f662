import type { EtcdServer } from "./etcd.ts";
import type { Host } from "./host.ts";
import { describeActual, dumpKernel } from "./oracle/actual.ts";
import { describeExpected } from "./oracle/expected.ts";
import { readStore } from "./oracle/leases.ts";
import { until } from "./until.ts";

/** How a host's kernel differs from what etcd says it must be; both empty when in sync. */
export interface Difference {
  /** Objects that should be there. */
  readonly missing: readonly string[];
  /** Objects of ours that should not. */
  readonly extra: readonly string[];
}

export interface OracleOptions {
  /** etcd prefix, default `/coreos.com/network`. */
  readonly prefix?: string;
}

/** Compares hosts with etcd, once; one entry per host, in order. */
export async function compare(
  hosts: readonly Host[],
  etcd: EtcdServer,
  options: OracleOptions = {},
): Promise<(readonly [Host, Difference])[]> {
  const { config, leases } = await readStore(etcd, options.prefix);
  const networks = [config.network, config.ipv6Network].filter((network) => network !== undefined);
  return Promise.all(
    hosts.map(async (host) => {
      const dump = await dumpKernel(host);
      const expected = await describeExpected(host, dump, config, leases);
      return [host, differ(expected, describeActual(dump, networks))] as const;
    }),
  );
}

/** Compares as multisets: a duplicate (say, the same route with a second metric) is one too many. */
function differ(expected: readonly string[], actual: readonly string[]): Difference {
  const open = new Map<string, number>();
  for (const line of expected) open.set(line, (open.get(line) ?? 0) + 1);
  const extra: string[] = [];
  for (const line of actual) {
    const count = open.get(line) ?? 0;
    if (count === 0) extra.push(line);
    else open.set(line, count - 1);
  }
  return { missing: [...open].filter(([, count]) => count > 0).map(([line]) => line), extra };
}

/**
 * The oracle of every data-plane test: waits until the links, addresses, routes, neighbours, FDB entries and
 * nexthops of all `hosts` are exactly what etcd's keys demand, no more and no less. At the deadline (ms, default
 * 20,000) it throws with the difference per host.
 */
export async function expectInSync(
  hosts: readonly Host[],
  etcd: EtcdServer,
  options: OracleOptions & { readonly deadline?: number } = {},
): Promise<void> {
  let differences: Awaited<ReturnType<typeof compare>> = [];
  let looking = hosts;
  await until(
    async () => {
      // While hosts differ only those are dumped again: with many hosts the dumps would slow down what they await.
      differences = (await compare(looking, etcd, options)).filter(
        ([, { missing, extra }]) => missing.length + extra.length > 0,
      );
      const settled = differences.length === 0;
      const complete = settled && looking.length === hosts.length;
      looking = settled ? hosts : differences.map(([host]) => host);
      return complete;
    },
    {
      message: () => `hosts and etcd differ\n${renderDifferences(differences)}`,
      deadline: options.deadline ?? 20_000,
      interval: 100,
    },
  );
}

/** A readable diff: `-` is missing, `+` is too much; the first 20 lines of the first 5 hosts that differ. */
export function renderDifferences(differences: readonly (readonly [Host, Difference])[]): string {
  const hosts = differences.map(([host, { missing, extra }]) => {
    const lines = [...missing.map((line) => `  - ${line}`), ...extra.map((line) => `  + ${line}`)];
    return [`${host.name}:`, ...shorten(lines, 20)].join("\n");
  });
  return shorten(hosts, 5).join("\n");
}

function shorten(items: readonly string[], most: number): readonly string[] {
  return items.length <= most ? items : [...items.slice(0, most), `  … and ${items.length - most} more`];
}
