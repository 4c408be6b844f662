/**
 * A million datagrams that nobody sane would send, from a member and from strangers: the daemon counts them, goes on
 * forwarding, and holds no more memory than before.
 *
 *   h1 (attacked) ── ext0 ─┬─ switch + etcd
 *   attacker ──────────────┘   with the address of a lease, and with one of none
 */
import { expect, test } from "bun:test";
import { readMemory } from "../bench/process-usage.ts";
import { Cluster, networkConfig, PREFIX } from "../lab/cluster.ts";
import { ping } from "../lab/ping.ts";
import { until } from "../lab/until.ts";
import { readStatus } from "./ask.ts";

const DATAGRAMS = 1_000_000;
const ATTACKER = new URL("./udp-attacker.ts", import.meta.url).pathname;
/** What the engine's heap may have grown by, MB. */
const MOST_GROWTH = 12;

test("a million malformed datagrams do no harm", async () => {
  await using cluster = await Cluster.create({ hosts: 2, config: networkConfig("v4", { Type: "udp" }) });
  const [daemon] = await cluster.startDaemons();
  const [h1] = cluster.hosts;
  const [p1, p2] = await cluster.addPods();
  // The switch is the attacker: once with a lease of its own, once (another port) as a stranger.
  await cluster.etcd.ctl(
    "put",
    `${PREFIX}/subnets/10.244.201.0-24`,
    JSON.stringify({ PublicIP: cluster.switch.ipv4 }),
  );
  const reached = async () => (await ping(p1!, p2!.ipv4, { count: 1, deadline: 500 })).received === 1;
  await until(reached, { message: () => "pods reach each other" });
  const attack = async (port: number, count: number) => {
    const { subnet } = { subnet: p1!.ipv4 };
    const words = [process.execPath, ATTACKER, `${h1!.ipv4}`, String(port), String(count), subnet];
    const { stdout, stderr, exitCode } = await cluster.switch.namespace.run(words);
    expect({ stderr, exitCode }).toEqual({ stderr: "", exitCode: 0 });
    return JSON.parse(stdout) as { sent: number };
  };
  await attack(8285, DATAGRAMS / 20);
  await attack(8286, DATAGRAMS / 20);
  const before = readMemory(daemon!.pid);
  const began = performance.now();
  await attack(8285, (DATAGRAMS * 3) / 4);
  await attack(8286, DATAGRAMS / 4);
  const seconds = (performance.now() - began) / 1000;
  const after = readMemory(daemon!.pid);
  expect(after.anonymous - before.anonymous).toBeLessThan(MOST_GROWTH);
  expect(daemon!.running).toBeTrue();
  expect(await reached()).toBeTrue();
  const { backend, findings } = await readStatus(h1!);
  const dropped = backend?.details?.dropped ?? "";
  expect(dropped).toMatch(/\d{4,} strangers/);
  expect(dropped).toMatch(/\d{4,} malformed/);
  expect(findings.map(({ code }) => code)).not.toContain("UDP_FORWARDING_ENDED");
  const growth = (after.anonymous - before.anonymous).toFixed(1);
  console.info(
    `  ${DATAGRAMS} datagrams in ${seconds.toFixed(1)} s, anonymous memory ${growth} MB more; ${dropped}`,
  );
}, 120_000);
