/**
 * vxlan with DirectRouting: plain routes to hosts on the own link, the tunnel to all others, and the change between
 * the two when the underlay's routes change.
 *
 *   pod ─ h1 ─ ext0 ─┬─ switch 1 + etcd ─ router ─ switch 2 ─ ext0 ─ h1@2 ─ pod
 *   pod ─ h2 ─ ext0 ─┘  192.0.2.0/24               198.51.100.0/24
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { Cluster, networkConfig } from "../lab/cluster.ts";
import type { Host } from "../lab/host.ts";
import { expectInSync } from "../lab/oracle.ts";
import { ping } from "../lab/ping.ts";
import { PingFlow } from "../lab/ping-flow.ts";
import type { Pod } from "../lab/pod.ts";
import { Router } from "../lab/router.ts";
import { Switch } from "../lab/switch.ts";
import { tcpTransfer } from "../lab/transfer.ts";
import { until } from "../lab/until.ts";

const TIMEOUT = 60_000;

const stack = new AsyncDisposableStack();
let cluster: Cluster;
let [h1, , far]: Host[] = [];
let [p1, p2, pFar]: Pod[] = [];

beforeAll(async () => {
  const config = networkConfig("dual", { Type: "vxlan", DirectRouting: true });
  cluster = stack.use(await Cluster.create({ hosts: 2, family: "dual", config }));
  const second = stack.use(await Switch.create({ number: 2, family: "dual" }));
  stack.use(await Router.create(cluster.switch, second));
  // The cluster's hosts hang on the second switch, so they have to go before it.
  stack.use(cluster);
  await cluster.addHost(1, second);
  [h1, , far] = cluster.hosts;
  await cluster.startDaemons();
  [p1, p2, pFar] = await cluster.addPods();
}, TIMEOUT);
afterAll(() => stack.disposeAsync());

test(
  "goes straight on the own segment and through the tunnel across the router",
  async () => {
    await expectInSync(cluster.hosts, cluster.etcd);
    expect(await routeTo(h1!, p2!.ipv4)).toBe("192.0.2.2 dev ext0");
    expect(await routeTo(h1!, p2!.ipv6)).toBe("fd00:db8::2 dev ext0");
    expect(await routeTo(h1!, pFar!.ipv4)).toMatch(/^10\.244\.\d+\.0 dev flannel\.1$/);
    expect(await routeTo(far!, p1!.ipv4)).toMatch(/ dev flannel\.1$/);
    expect(await routeTo(far!, p1!.ipv6)).toMatch(/ dev flannel-v6\.1$/);
    for (const [from, to] of [
      [p1, p2],
      [p1, pFar],
      [pFar, p2],
    ] as const) {
      for (const address of to!.addresses) expect((await ping(from!, address)).received).toBe(3);
    }
    for (const address of pFar!.addresses) {
      expect((await tcpTransfer(p1!, pFar!, address)).bytes).toBeGreaterThan(32 * 1024 * 1024);
    }
  },
  TIMEOUT,
);

test(
  "a peer that leaves the link gets the tunnel, one that comes back gets the plain route",
  async () => {
    await using flow = await PingFlow.start(p1!, p2!.ipv4, { rate: 50 });
    // As after a change of the network behind this host: h2 is reached through the router from now on.
    await h1!.namespace.ip("route add 192.0.2.2/32 via 192.0.2.254 dev ext0");
    await until(async () => / dev flannel\.1$/.test(await routeTo(h1!, p2!.ipv4)), {
      message: async () => `the tunnel is used, not ${await routeTo(h1!, p2!.ipv4)}`,
      deadline: 5_000,
    });
    await flow.expectAnswers(20);
    // The other family has nothing to do with it.
    expect(await routeTo(h1!, p2!.ipv6)).toBe("fd00:db8::2 dev ext0");
    await h1!.namespace.ip("route del 192.0.2.2/32");
    await expectInSync(cluster.hosts, cluster.etcd, { deadline: 5_000 });
    expect(await routeTo(h1!, p2!.ipv4)).toBe("192.0.2.2 dev ext0");
    await flow.expectAnswers(20);
    const { lost, longestGap } = await flow.stop();
    expect(longestGap).toBeLessThan(3_000);
    console.info(`  underlay route changed twice: ${lost} pings lost, longest gap ${longestGap} ms`);
  },
  TIMEOUT,
);

/** Next hop and device of the way to an address, as the kernel decides it. */
async function routeTo(host: Host, address: string): Promise<string> {
  const text = await host.namespace.exec("ip", "route", "get", address);
  return /via (\S+ dev \S+)/.exec(text)?.[1] ?? text;
}
