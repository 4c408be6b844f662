import { describe, expect, test } from "bun:test";
import { until } from "../../lab/until.ts";
import { Node, peer4Of, peerOf, vxlanBackend } from "./node.ts";
import { showDataPath, untilDataPath, vxlanOwnLines, vxlanPeerLines } from "./oracle.ts";

const IPV4 = { ipv4: true, ipv6: false };
const OWN4 = vxlanOwnLines()[0]!;
const peer4Lines = (n: number) => vxlanPeerLines(n).slice(0, 3);
/** 10.5.2.0 as a number: the id of the nexthop object of peer 2. */
const ID = 0x0a050200;

test("routes and nexthops of others stay, also across a restart and the removal of all peers", async () => {
  await using node = await Node.create("others");
  const { ns } = node;
  const others = [
    // An operator's static route into the cluster network, over another device.
    "10.5.200.0/24 via 192.0.2.200 dev eth0 proto static",
    // Another daemon of our kind, for another network.
    "10.99.1.0/24 via 192.0.2.201 dev eth0 proto 140",
    "fd00:99::/64 via 2001:db8::99 dev eth0 proto 140",
    "172.30.0.0/16 via 192.0.2.202 dev eth0",
  ];
  for (const route of others) await ns.ip(`route add ${route}`);
  await ns.ip("nexthop add id 77 via 192.0.2.77 dev eth0");
  await ns.ip("nexthop add id 173211904 via 192.0.2.78 dev eth0 proto 140");
  const foreign = await showDataPath(ns);
  expect(foreign).toHaveLength(4);
  const before = await node.drive();
  await before.start(peerOf(2));
  // An operator leads another network over our device.
  await ns.ip("route add 172.31.0.0/16 via 10.5.2.0 dev flannel.1 onlink proto static");
  await before.stop();
  const operator = "route 172.31.0.0/16 via 10.5.2.0 dev flannel.1 onlink proto static";
  await using after = await node.drive();
  await after.run(peerOf(2));
  await untilDataPath(ns, [...foreign, operator, ...vxlanOwnLines(), ...vxlanPeerLines(2)]);
  await after.update([], [peerOf(2).key]);
  await untilDataPath(ns, [...foreign, operator, ...vxlanOwnLines()]);
  const nexthops = await ns.json("ip", "-j", "nexthop", "show");
  expect(nexthops.map(({ id }: { id: number }) => id)).toEqual([77, 173_211_904]);
});

test("addresses on our device: those inside our network go, others stay", async () => {
  await using node = await Node.create("addresses");
  const { ns } = node;
  const before = await node.drive(vxlanBackend({}, IPV4));
  await before.start();
  await before.stop();
  await ns.ip("address add 10.5.77.0/32 dev flannel.1");
  await ns.ip("address add 172.30.0.1/24 dev flannel.1");
  await using after = await node.drive(vxlanBackend({}, IPV4));
  await after.run();
  const right = [OWN4, "address 172.30.0.1/24 flannel.1"];
  await untilDataPath(ns, right);
  await ns.ip("address add 10.5.78.0/32 dev flannel.1");
  await untilDataPath(ns, right);
  await ns.ip("address delete 10.5.1.0/32 dev flannel.1");
  await untilDataPath(ns, right);
});

test("another device of our naming and of another daemon's network is left", async () => {
  await using node = await Node.create("daemon");
  const { ns } = node;
  await ns.ip("link add flannel.9 type vxlan id 9 dev eth0 dstport 8499");
  await ns.ip("link set flannel.9 up");
  await ns.ip("address add 10.99.1.0/32 dev flannel.9");
  await ns.bridge("fdb append 02:00:00:00:09:09 dev flannel.9 dst 192.0.2.9 self permanent");
  await using drive = await node.drive();
  await drive.start(peerOf(2));
  expect(await showDataPath(ns)).toEqual(
    [
      "address 10.99.1.0/32 flannel.9",
      "fdb 02:00:00:00:09:09 192.0.2.9 flannel.9",
      ...vxlanOwnLines(),
      ...vxlanPeerLines(2),
    ].sort(),
  );
});

describe("a nexthop id that somebody else uses", () => {
  const foreignNexthop = `nexthop add id ${ID} via 192.0.2.77 dev eth0 proto static`;
  const shownNexthop = { id: ID, gateway: "192.0.2.77", dev: "eth0", protocol: "static" };
  const nexthops = async (node: Node) =>
    (await node.ns.json("ip", "-j", "nexthop", "show")).filter(({ id }: { id: number }) => id === ID);

  test("before we start: it stays, the peer is reached by a plain route", async () => {
    await using node = await Node.create("nexthop1");
    await node.ns.ip(foreignNexthop);
    await using drive = await node.drive(vxlanBackend({}, IPV4));
    await drive.start(peer4Of(2), peer4Of(3));
    expect(await showDataPath(node.ns)).toEqual([OWN4, ...peer4Lines(2), ...peer4Lines(3)].sort());
    expect(await nexthops(node)).toMatchObject([shownNexthop]);
    await drive.update([], [peer4Of(2).key]);
    expect(await showDataPath(node.ns)).toEqual([OWN4, ...peer4Lines(3)].sort());
    expect(await nexthops(node)).toMatchObject([shownNexthop]);
  });

  test("taken while we run: we give way", async () => {
    await using node = await Node.create("nexthop2");
    await using drive = await node.drive(vxlanBackend({}, IPV4));
    await drive.run(peer4Of(2));
    await node.ns.ip(foreignNexthop.replace("add", "replace"));
    await until(
      async () => {
        const [route] = await node.ns.json("ip", "-j", "-4", "route", "show", "10.5.2.0/24");
        return route.nhid === undefined;
      },
      { message: "a plain route", deadline: 3_000 },
    );
    await untilDataPath(node.ns, [OWN4, ...peer4Lines(2)]);
    expect(await nexthops(node)).toMatchObject([shownNexthop]);
    await drive.update([], [peer4Of(2).key]);
    expect(await nexthops(node)).toMatchObject([shownNexthop]);
  });

  test("made after the last look, for a peer that comes only now", async () => {
    await using node = await Node.create("nexthop3");
    await using drive = await node.drive(vxlanBackend({}, IPV4));
    await drive.run(peer4Of(3));
    const notices = await node.noticesDuring(async () => {
      await node.ns.ip(foreignNexthop);
    });
    expect(notices).toHaveLength(1);
    await drive.update([peer4Of(2)]);
    expect(await showDataPath(node.ns)).toEqual([OWN4, ...peer4Lines(2), ...peer4Lines(3)].sort());
    expect(await nexthops(node)).toMatchObject([shownNexthop]);
  });
});
