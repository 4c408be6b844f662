/**
 * Forty nodes that start at the same moment share out exactly forty subnets.
 *
 *   40 × alloc in h1, each with an id, an address and a subnet file of its own ── ext0 ── switch + etcd
 */
import { expect, test } from "bun:test";
import { Cluster, networkConfig } from "../lab/cluster.ts";
import { Daemon } from "../lab/daemon.ts";
import type { Host } from "../lab/host.ts";
import { endpointFor } from "../lab/switch-etcd.ts";
import { storedLeases } from "./leases.ts";

const NODES = 40;

test("all get one, all differ, and the one too many is refused with the counts", async () => {
  await using cluster = await Cluster.create({ hosts: 1, config: null });
  const [host] = cluster.hosts as [Host];
  await using nodes = new AsyncDisposableStack();
  const start = (n: number) =>
    nodes.use(
      Daemon.start(host, {
        endpoints: endpointFor(host, cluster.switch),
        nodeId: `node-${n}`,
        flags: [`--public-ip=203.0.113.${n}`, `--subnet-file=${host.directory}/${n}.env`],
      }),
    );
  const daemons = Array.from({ length: NODES }, (_, n) => start(n + 1));
  // The barrier: all of them wait for the network config.
  const deadline = 60_000;
  await Promise.all(
    daemons.map((daemon) => daemon.waitForLog(({ code }) => code === "CONFIG_MISSING", { deadline })),
  );
  const released = performance.now();
  await cluster.configure({
    ...networkConfig("v4", { Type: "alloc" }),
    SubnetMin: "10.244.1.0",
    SubnetMax: `10.244.${NODES}.0`,
  });
  await Promise.all(daemons.map((daemon) => daemon.ready));
  console.info(
    `  ${NODES} leases ${Math.round(performance.now() - released)} ms after the config was written`,
  );

  const leases = await storedLeases(cluster);
  expect(leases.map(({ key }) => key).sort()).toEqual(
    Array.from({ length: NODES }, (_, n) => `10.244.${n + 1}.0-24`).sort(),
  );
  expect(new Set(leases.map(({ value }) => value?.NodeID)).size).toBe(NODES);
  for (const { lease } of leases) expect(lease).not.toBe("0");

  const late = start(NODES + 1);
  expect(await late.ended(60_000)).toMatchObject({ code: 1 });
  const [error, ...more] = late.lines.filter(({ level }) => level === "error");
  expect(error).toMatchObject({
    code: "LEASE_EXHAUSTED",
    hint: expect.stringContaining("--subnet-lease-ttl"),
  });
  expect(error?.msg).toContain(`${NODES} of ${NODES} in use, 0 free`);
  expect(more).toEqual([]);
  expect(await Bun.file(`${host.directory}/${NODES + 1}.env`).exists()).toBe(false);
  expect(await storedLeases(cluster)).toHaveLength(NODES);
  await Promise.all(daemons.map((daemon) => daemon.stop()));
}, 180_000);
