/** What a backend finds of the one before it, in a real kernel. */

import { describe, expect, test } from "bun:test";
import { existsSync, writeFileSync } from "node:fs";
import type { ActiveBackend } from "flannel/sdk";
import { ActiveDriver } from "../../../core/dataplane/active.ts";
import { removeCharonRemains } from "../../../core/dataplane/stale-charon.ts";
import { startOf } from "../../../core/host/process-note.ts";
import { Health } from "../../../core/observe/health.ts";
import { blackholeRoutes } from "../../../core/traffic/blackhole.ts";
import { kernelIn } from "../../lab/in-namespace.ts";
import { TemporaryFolder } from "../host/temporary-folder.ts";
import { RecordingLog } from "../observe/recording-log.ts";
import { NO_PROCESSES } from "./no-processes.ts";
import { NETWORKS, Node, OWN, peerOf, prefixesOf } from "./node.ts";

/** Routes with our mark and devices named like ours. */
async function left(node: Node): Promise<readonly string[]> {
  const text = await node.ns.exec(
    "sh",
    "-ec",
    "ip route show proto 140; ip -6 route show proto 140; ip -o link show | cut -d: -f2 | grep flannel || true; ip nexthop",
  );
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
}

/** An active backend that makes nothing. */
async function driverOn(
  node: Node,
  kernel: ReturnType<typeof kernelIn>,
  devices?: readonly string[],
  extras = false,
  keeps: Pick<ActiveBackend, "keepsBlackholes" | "keepsPolicies"> = {},
) {
  const log = new RecordingLog();
  const backend: ActiveBackend = {
    mode: "active",
    ...(devices ? { devices } : {}),
    ...keeps,
    prepare: async () => ({ backendType: "udp" }),
    attach: async () => ({ mtu: 1472 }),
    sync: async () => ({ failed: [] }),
    stop: async () => {},
    cleanup: async () => [],
  };
  const driver = new ActiveDriver({
    backend,
    kernel,
    external: await node.external(),
    networks: prefixesOf([NETWORKS.ipv4 ?? "", NETWORKS.ipv6 ?? ""]),
    ...(extras ? { extras: blackholeRoutes } : {}),
    health: new Health(log),
    log,
    timeouts: { prepare: 10_000, sync: 10_000, stop: 10_000 },
    host: {
      kernel,
      log,
      ...NO_PROCESSES,
      statePath: (name: string) => `/nonexistent/${name}`,
      signal: new AbortController().signal,
    },
  });
  return { driver, log };
}

test("a backend that acts itself removes devices, routes and nexthops of the declarative one before it", async () => {
  await using node = await Node.create("stale-active");
  const before = await node.drive();
  await before.start(peerOf(2), peerOf(3));
  await before.stop();
  await node.ns.ip("route add 10.5.9.0/24 via 192.0.2.9 dev eth0 proto 140");
  await node.ns.ip("nexthop add id 168101120 via 192.0.2.10 dev eth0 proto 140");
  await node.ns.ip("route add blackhole 10.5.1.0/24 metric 4278198272 proto 140");
  // Of others, and of another network.
  await node.ns.ip("route add 10.5.10.0/24 via 192.0.2.10 dev eth0 proto static");
  await node.ns.ip("route add 10.99.1.0/24 via 192.0.2.10 dev eth0 proto 140");
  using kernel = kernelIn(node.ns);
  const { driver, log } = await driverOn(node, kernel, ["flannel0"]);
  await driver.prepare();
  expect(await left(node)).toHaveLength(12);
  await driver.attach({ subnets: OWN });
  expect(await left(node)).toEqual(["10.99.1.0/24 via 192.0.2.10 dev eth0"]);
  expect(await node.ns.exec("ip", "route", "show", "10.5.10.0/24")).toContain("proto static");
  expect(log.messages("info")).toEqual([
    expect.stringMatching(/^removed device flannel/),
    expect.stringMatching(/^removed device flannel/),
    "removed 2 routes, left by an earlier configuration",
  ]);
});

test("it keeps its own devices and routes; one that names none keeps what may be its own", async () => {
  await using node = await Node.create("stale-own");
  await node.ns.ip("tuntap add flannel0 mode tun");
  await node.ns.ip("link set flannel0 up");
  await node.ns.ip("address add 10.5.1.0/32 dev flannel0");
  await node.ns.ip("route add 10.5.0.0/16 dev flannel0 proto 140");
  using kernel = kernelIn(node.ns);
  for (const devices of [["flannel0"], undefined]) {
    const { driver } = await driverOn(node, kernel, devices, true);
    await driver.prepare();
    await driver.attach({ subnets: OWN });
    const found = await left(node);
    expect(found.slice(0, 2)).toEqual([
      "10.5.0.0/16 dev flannel0 scope link linkdown",
      "blackhole 10.5.1.0/24 metric 4278198272",
    ]);
    expect(found.at(-1)).toBe("flannel0");
  }
  const { driver } = await driverOn(node, kernel, ["flannel-wg"], false, { keepsBlackholes: true });
  await driver.attach({ subnets: OWN });
  expect(await left(node)).toEqual([
    "blackhole 10.5.1.0/24 metric 4278198272",
    "blackhole fd00:5:1::/64 dev lo metric 4278198272 pref medium",
  ]);
});

test("one with routes of its own on the interface removes nexthops there, and with them the routes that use them", async () => {
  await using node = await Node.create("stale-interface");
  await node.ns.ip("nexthop add id 168101120 via 192.0.2.10 dev eth0 proto 140");
  await node.ns.ip("route add 10.5.2.0/24 nhid 168101120 proto 140");
  await node.ns.ip("route add 10.5.3.0/24 dev eth0 proto 140");
  using kernel = kernelIn(node.ns);
  const { driver } = await driverOn(node, kernel, ["eth0"]);
  await driver.attach({ subnets: OWN });
  expect(await left(node)).toEqual(["10.5.3.0/24 dev eth0 scope link"]);
});

test("a declarative one that starts removes the device of one that acted itself, and marked routes beside its own", async () => {
  await using node = await Node.create("stale-declared");
  await node.ns.ip("tuntap add flannel0 mode tun");
  await node.ns.ip("link set flannel0 up");
  await node.ns.ip("address add 10.5.1.0/32 dev flannel0");
  await node.ns.ip("route add 10.5.0.0/16 dev flannel0 proto 140");
  await node.ns.ip("route add 10.5.9.0/24 via 192.0.2.9 dev eth0 proto 140");
  await using driver = await node.drive(undefined, { starting: true });
  await driver.driver.prepare();
  await driver.driver.attach({ subnets: OWN });
  expect(await left(node)).toEqual(["flannel.1", "flannel-v6.1"]);
});

describe("of the ipsec backend", () => {
  const POLICY = "tmpl src 192.0.2.1 dst 192.0.2.2 proto esp mode tunnel reqid";
  async function leave(node: Node) {
    const { ns } = node;
    await ns.ip(`xfrm policy add src 10.5.1.0/24 dst 10.5.2.0/24 dir out ${POLICY} 11`);
    await ns.ip(`xfrm policy add src 10.5.1.0/24 dst 10.5.3.0/24 dir out ${POLICY} 12`);
    await ns.ip(`xfrm policy add src 10.9.1.0/24 dst 10.5.2.0/24 dir out ${POLICY} 11`);
    await ns.ip("address add 10.5.1.0/32 dev lo");
    await ns.ip("address add 10.5.1.9/32 dev lo");
    await ns.ip("route add blackhole 10.5.0.0/16 proto 140");
  }
  async function found({ ns }: Node) {
    const text = await ns.exec(
      "sh",
      "-c",
      "ip xfrm policy list | grep ^src; ip -o -4 address show dev lo | grep -o '10[.].*/32'; ip route show proto 140",
    );
    return text
      .split("\n")
      .map((line) => line.trim())
      .filter((line) => line !== "")
      .sort();
  }
  const OTHERS = ["10.5.1.9/32", "src 10.5.1.0/24 dst 10.5.3.0/24", "src 10.9.1.0/24 dst 10.5.2.0/24"];

  test("policies, the address and the guard go with another backend, and nobody else's", async () => {
    await using node = await Node.create("stale-xfrm");
    using kernel = kernelIn(node.ns);
    await leave(node);
    const { driver, log } = await driverOn(node, kernel, ["flannel0"]);
    await driver.prepare();
    await driver.attach({ subnets: OWN });
    expect(await found(node)).toEqual(OTHERS);
    expect(log.messages("info")).toContain("removed IPsec policies, left by an earlier configuration");
  });

  test("a declarative one that starts removes them too", async () => {
    await using node = await Node.create("stale-xfrm-declared");
    await leave(node);
    await using driver = await node.drive(undefined, { starting: true });
    await driver.driver.prepare();
    await driver.driver.attach({ subnets: OWN });
    expect((await found(node)).filter((line) => !line.startsWith("blackhole"))).toEqual(OTHERS);
  });

  test("its charon, the rule of that and its note go; without a note they are somebody else's", async () => {
    await using node = await Node.create("stale-charon");
    using folder = new TemporaryFolder();
    using kernel = kernelIn(node.ns);
    const note = folder.file("subnet.env.charon");
    const rules = async () =>
      [await node.ns.ip("rule show"), await node.ns.ip("-6 rule show")].map((text) =>
        text.match(/lookup \d{2,}/g)?.join(" "),
      );
    for (const family of ["-4", "-6"])
      for (const table of [220, 55]) await node.ns.ip(`${family} rule add priority ${table} table ${table}`);
    const both = "lookup 55 lookup 220";
    const log = new RecordingLog();
    await removeCharonRemains(kernel, note, log);
    expect(await rules()).toEqual([both, both]);
    for (const [remarks, left] of [
      [{ table: 0, priority: 220 }, both],
      [{ table: 55, priority: 55 }, "lookup 220"],
      [undefined, undefined],
    ] as const) {
      await using charon = Bun.spawn(["sleep", "1000"]);
      writeFileSync(note, JSON.stringify({ pid: charon.pid, since: startOf(charon.pid), remarks }));
      await removeCharonRemains(kernel, note, log);
      await charon.exited;
      expect(charon.signalCode).toBe("SIGKILL");
      expect(await rules()).toEqual([left, left]);
      expect(existsSync(note)).toBe(false);
    }
  });

  test("they stay for a backend that has such itself", async () => {
    await using node = await Node.create("stale-xfrm-own");
    using kernel = kernelIn(node.ns);
    await leave(node);
    const before = await found(node);
    const { driver } = await driverOn(node, kernel, ["eth0"], false, {
      keepsBlackholes: true,
      keepsPolicies: true,
    });
    await driver.prepare();
    await driver.attach({ subnets: OWN });
    expect(await found(node)).toEqual(before);
  });
});
