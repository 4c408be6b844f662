/**
 * `MembersOnly`: only nodes with a lease may send to the tunnel.
 *
 *   pod ── cni0 ── h1 ── ext0 ─┬─ switch + etcd
 *   pod ── cni0 ── h2 ── ext0 ─┤
 *           a stranger ── ext0 ─┘  h3, which joins later
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { Cluster, networkConfig, PREFIX } from "../lab/cluster.ts";
import type { Daemon } from "../lab/daemon.ts";
import type { Host } from "../lab/host.ts";
import { expectInSync } from "../lab/oracle.ts";
import { ping } from "../lab/ping.ts";
import type { Pod } from "../lab/pod.ts";
import { until } from "../lab/until.ts";
import { readStatus } from "./ask.ts";
import { runCommand } from "./command.ts";
import { ownLease } from "./leases.ts";

const config = (options: object) => networkConfig("dual", { Type: "vxlan", ...options });
const stack = new AsyncDisposableStack();
let cluster: Cluster;
let [h1, h2, h3] = [] as unknown as [Host, Host, Host];
let d1: Daemon;
let [p1, p2] = [] as unknown as Pod[];

beforeAll(async () => {
  const options = { hosts: 3, family: "dual", config: config({ MembersOnly: true }) } as const;
  cluster = stack.use(await Cluster.create(options));
  [h1, h2, h3] = cluster.hosts as [Host, Host, Host];
  d1 = cluster.startDaemon(h1);
  await Promise.all([d1.ready, cluster.startDaemon(h2).ready]);
  p1 = await cluster.addPod(h1);
  p2 = await cluster.addPod(h2);
}, 90_000);
afterAll(() => stack.disposeAsync());

/** Sends datagrams to the tunnel's port, as anybody on the network could. */
async function forge(from: Host, to: string): Promise<void> {
  const target = to.includes(":") ? `UDP6-SENDTO:[${to}]:8472` : `UDP4-SENDTO:${to}:8472`;
  for (let n = 0; n < 3; n++) await from.namespace.run(["socat", "-u", "-", target], { input: "garbage" });
}

/** Packets of strangers that were dropped, IPv4 and IPv6. */
async function dropped(host: Host): Promise<readonly number[]> {
  const text = await host.namespace.exec("nft", "list", "ruleset");
  return ["ip", "ip6"].map((family) => {
    const counter = new RegExp(`udp dport 8472 ${family} saddr != @members counter packets (\\d+)`);
    return Number(counter.exec(text)?.[1]);
  });
}

const rulesetOf = (host: Host) => host.namespace.exec("nft", "list", "ruleset");
const members = (...hosts: Host[]) => hosts.flatMap(({ ipv4, ipv6 }) => [ipv4, ipv6]);

/** Waits until exactly these hosts are let in. */
async function untilMembers(host: Host, ...wanted: Host[]): Promise<void> {
  await until(
    async () => {
      const sets = (await rulesetOf(host)).match(/elements = \{[^}]*\}/g)?.join() ?? "";
      const found = sets.split(/[\s,{}=]+/).filter((word) => /^[\da-f]+[.:]/.test(word));
      return (
        found.toSorted().join() ===
        members(...wanted)
          .toSorted()
          .join()
      );
    },
    { message: () => rulesetOf(host), deadline: 5_000 },
  );
}

test("peers reach each other, a stranger's datagrams are dropped and counted", async () => {
  await expectInSync([h1, h2], cluster.etcd);
  for (const address of p2!.addresses) expect((await ping(p1!, address)).received).toBe(3);
  expect(await dropped(h1)).toEqual([0, 0]);
  for (const address of members(h1)) await forge(h3, address);
  expect(await dropped(h1)).toEqual([3, 3]);
  expect((await readStatus(h1)).findings).toEqual([]);
}, 60_000);

test("a node is let in with its lease, and out with it", async () => {
  const d3 = cluster.startDaemon(h3);
  await d3.ready;
  const p3 = await cluster.addPod(h3);
  await untilMembers(h1, h2, h3);
  for (const address of p3.addresses) expect((await ping(p1!, address)).received).toBe(3);
  const before = await dropped(h1);
  for (const address of members(h1)) await forge(h3, address);
  expect(await dropped(h1)).toEqual(before);

  const lease = await ownLease(cluster, h3);
  await d3.stop();
  await cluster.etcd.ctl("del", `${PREFIX}/subnets/${lease?.key}`);
  await untilMembers(h1, h2);
  await forge(h3, h1.ipv4);
  expect((await dropped(h1))[0]).toBe((before[0] ?? 0) + 3);
  expect((await ping(p1!, p2!.ipv4)).received).toBe(3);
}, 60_000);

test("stopping leaves the filter, a restart adopts it, a flush is undone", async () => {
  const handles = async () =>
    (await h1.namespace.exec("nft", "-a", "list", "tables")).match(/flannel-members.*/g);
  const before = await handles();
  await d1.stop();
  expect(await handles()).toEqual(before);
  d1 = cluster.startDaemon(h1);
  await d1.ready;
  await h1.namespace.exec("nft", "add", "element", "ip", "flannel-members", "members", "{ 203.0.113.7 }");
  await untilMembers(h1, h2);
  expect(await handles()).toEqual(before);
  await h1.namespace.exec("nft", "flush", "ruleset");
  await untilMembers(h1, h2);
}, 60_000);

test("without the option the filter goes; cleanup removes one that is there", async () => {
  for (const daemon of cluster.daemons) if (daemon.host === h2) await daemon.stop();
  const seen = await runCommand(cluster, h2, ["cleanup", "--dry-run"]);
  expect(seen.stdout).toContain("member filter: nftables table ip flannel-members");
  expect(seen.stdout).toContain("member filter: nftables table ip6 flannel-members");
  expect(await runCommand(cluster, h2, ["cleanup"])).toMatchObject({ exitCode: 0 });
  expect(await rulesetOf(h2)).not.toContain("flannel-members");

  await cluster.configure(config({}));
  await d1.stop();
  d1 = cluster.startDaemon(h1);
  await d1.ready;
  await until(async () => !(await rulesetOf(h1)).includes("flannel-members"), {
    message: () => rulesetOf(h1),
    deadline: 10_000,
  });
}, 60_000);
