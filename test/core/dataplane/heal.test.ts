import { describe, expect, test } from "bun:test";
import { until } from "../../lab/until.ts";
import { Node, peer4Of, peerOf, vxlanBackend } from "./node.ts";
import { untilDataPath, vxlanOwnLines, vxlanPeerLines } from "./oracle.ts";

/** What heals within this time is a short gap for the pods, ms. */
const PROMPT_MS = 3_000;
const PEERS = [peerOf(2), peerOf(3), peerOf(4)];
const RIGHT = [...vxlanOwnLines(), ...[2, 3, 4].flatMap((n) => vxlanPeerLines(n))];

/** A node that repairs itself and has nothing left to do. */
async function running(hint: string) {
  await using stack = new AsyncDisposableStack();
  const node = stack.use(await Node.create(hint));
  const drive = stack.use(await node.drive());
  await drive.run(...PEERS);
  await untilDataPath(node.ns, RIGHT);
  const done = stack.move();
  return { node, drive, [Symbol.asyncDispose]: () => done.disposeAsync() };
}

describe("heals within 3 s, with MAC and lease as they were:", () => {
  test.each<[string, readonly string[]]>([
    ["the device deleted", ["ip link delete flannel.1"]],
    ["the IPv6 device deleted", ["ip link delete flannel-v6.1"]],
    ["the device down and up", ["ip link set flannel.1 down", "ip link set flannel.1 up"]],
    ["the device down", ["ip link set flannel-v6.1 down"]],
    ["its MTU changed", ["ip link set flannel.1 mtu 1300"]],
    [
      "all routes flushed",
      [...[2, 3, 4].map((n) => `ip route delete 10.5.${n}.0/24`), "ip -6 route flush proto 140"],
    ],
    ["one route deleted", ["ip route delete 10.5.3.0/24"]],
    ["a route led elsewhere", ["ip route replace 10.5.3.0/24 via 192.0.2.9 dev eth0"]],
    ["all nexthops flushed", ["ip nexthop flush proto 140"]],
    [
      "all neighbours flushed",
      [
        "ip neighbour flush dev flannel.1 nud permanent",
        "ip -6 neighbour flush dev flannel-v6.1 nud permanent",
      ],
    ],
    [
      "a neighbour rewritten",
      ["ip neighbour replace 10.5.2.0 lladdr 02:00:00:00:00:66 nud reachable dev flannel.1"],
    ],
    [
      "all forwarding entries deleted",
      [2, 3, 4].map((n) => `bridge fdb delete 02:00:00:00:02:0${n} dev flannel.1`),
    ],
    [
      "a forwarding entry led elsewhere",
      ["bridge fdb replace 02:00:00:00:02:03 dev flannel.1 dst 192.0.2.66 self permanent"],
    ],
    [
      "entries nobody wants",
      [
        "bridge fdb append 00:00:00:00:00:00 dev flannel.1 dst 192.0.2.66 self permanent",
        "bridge fdb append 00:00:00:00:00:00 dev flannel.1 dst 192.0.2.67 self permanent",
      ],
    ],
    ["a route on our device nobody wants", ["ip route add 10.5.9.0/24 via 10.5.9.0 dev flannel.1 onlink"]],
    ["the own address deleted", ["ip address delete 10.5.1.0/32 dev flannel.1"]],
    ["the underlay down and up", ["ip link set eth0 down", "ip link set eth0 up"]],
  ])("%s", async (_, commands) => {
    await using state = await running("heal");
    const { node, drive } = state;
    const published = [...drive.published];
    const macs = await Promise.all(["flannel.1", "flannel-v6.1"].map((name) => node.kernel.link(name)));
    for (const command of commands) await node.ns.exec(...command.split(" "));
    await until(
      async () => {
        await untilDataPath(node.ns, RIGHT, 0);
        const links = await Promise.all(["flannel.1", "flannel-v6.1"].map((name) => node.kernel.link(name)));
        return links.every(
          (link, at) => link?.up && link.mac === macs[at]?.mac && link.mtu === macs[at]?.mtu,
        );
      },
      { message: "everything as before", deadline: PROMPT_MS },
    );
    expect(drive.published).toEqual(published);
    expect(drive.health.list()).toEqual([]);
  });
});

test("the underlay deleted and made again, with another index: all is back, the lease unchanged", async () => {
  await using state = await running("underlay");
  const { node, drive } = state;
  const { ns } = node;
  await ns.ip("link delete eth0");
  await until(() => drive.health.has("DATAPLANE_BROKEN"), { message: "the finding", deadline: PROMPT_MS });
  expect(drive.health.list()[0]?.text).toContain("eth0");
  await ns.ip("link add eth0 mtu 1500 address 02:00:00:00:00:01 type veth peer name far0");
  await ns.ip("link set far0 up");
  await ns.ip("link set eth0 up");
  await ns.ip("address add 192.0.2.1/24 dev eth0");
  await ns.ip("address add 2001:db8::1/64 dev eth0");
  await untilDataPath(ns, RIGHT, PROMPT_MS);
  await until(() => drive.health.list().length === 0, { message: "no finding left" });
  expect(drive.published).toHaveLength(1);
  expect((await node.kernel.link("flannel.1"))?.vxlan?.underlay).toBe("eth0");
});

test("twenty deletes in two seconds end in a whole data path", async () => {
  await using state = await running("deletes");
  const { node, drive } = state;
  const begun = performance.now();
  for (let deletes = 0; deletes < 20; deletes++) {
    await node.ns.run(["ip", "link", "delete", deletes % 2 === 0 ? "flannel.1" : "flannel-v6.1"]);
    const due = begun + (deletes + 1) * 100 - performance.now();
    if (due > 0) await Bun.sleep(due);
  }
  await untilDataPath(node.ns, RIGHT, PROMPT_MS);
  await until(() => drive.health.list().length === 0, { message: "no finding left", deadline: PROMPT_MS });
  expect(drive.published).toHaveLength(1);
  expect(drive.mtus).toEqual([1430]);
});

test("with nothing to repair nothing is written", async () => {
  await using state = await running("quiet");
  const { node, drive } = state;
  // Whatever the start left to look at is looked at first.
  await node.ns.ip("address add 192.0.2.50/24 dev eth0");
  await until(() => drive.log.messages().length > 0, { message: "any line" });
  drive.resetWrites();
  const notices = await node.noticesDuring(async () => {
    await node.ns.ip("address delete 192.0.2.50/24 dev eth0");
    await Bun.sleep(600);
  });
  expect(notices.every((notice) => notice.kind === "address" || notice.kind === "route")).toBe(true);
  expect(drive.writes).toEqual({ changes: 0, links: 0 });
});

test("stopping leaves the data path as it is, and nothing repairs it any more", async () => {
  await using state = await running("stop");
  const { node, drive } = state;
  await drive.stop();
  await untilDataPath(node.ns, RIGHT, 0);
  await node.ns.ip("route delete 10.5.3.0/24");
  drive.resetWrites();
  await Bun.sleep(500);
  expect(drive.writes).toEqual({ changes: 0, links: 0 });
});

test("the MTU follows the underlay, down and up: devices, and the one for pods", async () => {
  await using state = await running("mtu");
  const { node, drive } = state;
  for (const mtu of [1400, 9000]) {
    await node.ns.ip(`link set eth0 mtu ${mtu}`);
    await until(() => drive.mtus.at(-1) === mtu - 70, {
      message: `MTU ${mtu - 70} told`,
      deadline: PROMPT_MS,
    });
    expect(await node.kernel.link("flannel.1")).toMatchObject({ mtu: mtu - 50 });
    expect(await node.kernel.link("flannel-v6.1")).toMatchObject({ mtu: mtu - 70 });
  }
  expect(drive.mtus).toEqual([1430, 1330, 8930]);
  await untilDataPath(node.ns, RIGHT);
});

test("direct routing follows the routes of the underlay", async () => {
  await using node = await Node.create("direct");
  await using drive = await node.drive(vxlanBackend({ DirectRouting: true }, { ipv4: true, ipv6: false }));
  const own = vxlanOwnLines()[0]!;
  const far = { address: "198.51.100.2" };
  const tunnel = vxlanPeerLines(2, far).slice(0, 3);
  await node.ns.ip("route add 198.51.100.0/24 via 192.0.2.254");
  const underlay = "route 198.51.100.0/24 via 192.0.2.254 dev eth0 proto boot";
  await drive.run(peer4Of(2, far), peer4Of(3));
  const direct3 = "route 10.5.3.0/24 via 192.0.2.3 dev eth0";
  await untilDataPath(node.ns, [own, underlay, ...tunnel, direct3]);
  await node.ns.ip("route replace 198.51.100.0/24 dev eth0");
  await untilDataPath(node.ns, [
    own,
    "route 198.51.100.0/24 dev eth0 proto boot",
    "route 10.5.2.0/24 via 198.51.100.2 dev eth0",
    direct3,
  ]);
  await node.ns.ip("route replace 198.51.100.0/24 via 192.0.2.254");
  await untilDataPath(node.ns, [own, underlay, ...tunnel, direct3]);
});
