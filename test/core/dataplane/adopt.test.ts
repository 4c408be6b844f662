import { describe, expect, test } from "bun:test";
import hostGw from "../../../backends/host-gw/index.ts";
import { Node, OWN, peer4Of, peerOf, vxlanBackend } from "./node.ts";
import { showDataPath, untilDataPath, vxlanOwnLines, vxlanPeerLines } from "./oracle.ts";

const TWO_PEERS = [...vxlanOwnLines(), ...vxlanPeerLines(2), ...vxlanPeerLines(3)].sort();

test("a fresh node programs own addresses and peers, in both families", async () => {
  await using node = await Node.create("fresh");
  await using drive = await node.drive();
  await drive.start(peerOf(2), peerOf(3));
  expect(await showDataPath(node.ns)).toEqual(TWO_PEERS);
  const links = await node.ns.json("ip", "-j", "-d", "link", "show", "type", "vxlan");
  expect(links.map((link) => [link.ifname, link.mtu, link.linkinfo.info_data.learning])).toEqual([
    ["flannel.1", 1450, false],
    ["flannel-v6.1", 1430, false],
  ]);
  expect(drive.published[0]).toEqual({
    backendType: "vxlan",
    ipv4: { VNI: 1, VtepMAC: links[0].address },
    ipv6: { VNI: 1, VtepMAC: links[1]?.address },
  });
  expect(drive.mtus).toEqual([1430]);
  expect(drive.sysctls.map((sysctl) => `${sysctl.path}=${sysctl.value}`)).toContain(
    "net/ipv6/conf/flannel.1/accept_ra=0",
  );
  expect(drive.health.list()).toEqual([]);
});

test("a restart finds nothing to write: the kernel sees no change", async () => {
  await using node = await Node.create("restart");
  const before = await node.drive();
  await before.start(peerOf(2), peerOf(3));
  await before.stop();
  await using after = await node.drive();
  const notices = await node.noticesDuring(async () => {
    await after.start(peerOf(2), peerOf(3));
  });
  expect(notices).toEqual([]);
  expect(after.published).toEqual(before.published);
  expect(after.mtus).toEqual(before.mtus);
  // The own addresses are written without looking; that they exist is success and tells nobody anything.
  expect(after.writes).toEqual({ changes: Object.keys(OWN).length, links: 0 });
  expect(await showDataPath(node.ns)).toEqual(TWO_PEERS);
});

test("a restart removes peers that went meanwhile and takes in new ones and changed ones", async () => {
  await using node = await Node.create("gone");
  const before = await node.drive();
  await before.start(peerOf(2), peerOf(3), peerOf(4));
  await before.stop();
  await using after = await node.drive();
  const changed = { mac: "02:00:00:00:00:99", address: "192.0.2.77" };
  await after.start(peerOf(3), peerOf(4, changed), peerOf(5));
  expect(await showDataPath(node.ns)).toEqual(
    [...vxlanOwnLines(), ...vxlanPeerLines(3), ...vxlanPeerLines(4, changed), ...vxlanPeerLines(5)].sort(),
  );
});

describe("what upstream's daemon left", () => {
  test("is migrated in place: its device with MAC and MTU rule, its proto-boot routes, its entries", async () => {
    await using node = await Node.create("upstream");
    const { ns } = node;
    await ns.ip(
      "link add flannel.1 address 76:af:5e:12:2e:67 mtu 1450 type vxlan id 1 local 192.0.2.1 dev eth0 dstport 8472 nolearning",
    );
    await ns.ip("link set flannel.1 up");
    await ns.ip("address add 10.5.1.0/32 dev flannel.1");
    for (const n of [2, 9]) {
      await ns.ip(`neighbour add 10.5.${n}.0 lladdr 02:00:00:00:02:0${n} nud permanent dev flannel.1`);
      await ns.bridge(`fdb append 02:00:00:00:02:0${n} dev flannel.1 dst 192.0.2.${n} self permanent`);
      await ns.ip(`route add 10.5.${n}.0/24 via 10.5.${n}.0 dev flannel.1 onlink`);
    }
    // The MAC peer 2 had before its last reboot: upstream leaves such entries for ever (A15).
    await ns.bridge("fdb append 02:00:00:00:99:02 dev flannel.1 dst 192.0.2.2 self permanent");
    const index = (await node.kernel.link("flannel.1"))?.index;
    await using drive = await node.drive(vxlanBackend({}, { ipv4: true, ipv6: false }));
    const notices = await node.noticesDuring(async () => {
      await drive.start(peer4Of(2));
    });
    expect(await showDataPath(ns)).toEqual([vxlanOwnLines()[0]!, ...vxlanPeerLines(2).slice(0, 3)].sort());
    expect((await node.kernel.link("flannel.1"))?.index).toBe(index!);
    expect(drive.published[0]?.ipv4).toEqual({ VNI: 1, VtepMAC: "76:af:5e:12:2e:67" });
    const [route] = await ns.json("ip", "-j", "-4", "route", "show", "10.5.2.0/24");
    expect([route.protocol, route.nhid]).toEqual(["140", 0x0a050200]);
    // Replaced, never absent: nobody was told of a deleted route to the peer that stays.
    const deleted = notices.flatMap((notice) =>
      notice.kind === "route" && notice.action === "delete" ? [notice.route.dst] : [],
    );
    expect(deleted).toEqual(["10.5.9.0/24"]);
  });

  test("is migrated in place over IPv6, too", async () => {
    await using node = await Node.create("upstream6");
    const { ns } = node;
    await ns.ip("link add flannel-v6.1 type vxlan id 1 local 2001:db8::1 dev eth0 dstport 8472 nolearning");
    await ns.ip("link set flannel-v6.1 mtu 1430 up");
    for (const n of [2, 9])
      await ns.ip(`route add fd00:5:${n}::/64 via fd00:5:${n}:: dev flannel-v6.1 onlink`);
    await using drive = await node.drive();
    const notices = await node.noticesDuring(async () => {
      await drive.start(peerOf(2));
    });
    expect(await showDataPath(ns)).toEqual([...vxlanOwnLines(), ...vxlanPeerLines(2)].sort());
    const deleted = notices.flatMap((notice) =>
      notice.kind === "route" && notice.action === "delete" ? [notice.route.dst] : [],
    );
    expect(deleted).toEqual(["fd00:5:9::/64"]);
  });

  test("by host-gw is taken over in place where a peer needs it, and left where none does", async () => {
    await using node = await Node.create("upstream-gw");
    const { ns } = node;
    for (const n of [2, 9]) await ns.ip(`route add 10.5.${n}.0/24 via 192.0.2.${n} dev eth0`);
    const backend = hostGw.configure({
      options: {},
      families: { ipv4: true, ipv6: false },
      networks: { ipv4: "10.5.0.0/16" },
      nodeId: "node-1",
    });
    if (backend.mode !== "declarative") throw new Error("host-gw is declarative");
    await using drive = await node.drive(backend);
    const notices = await node.noticesDuring(async () => {
      await drive.start({ ...peer4Of(2), backendType: "host-gw" });
    });
    expect(await showDataPath(ns)).toEqual([
      "route 10.5.2.0/24 via 192.0.2.2 dev eth0",
      "route 10.5.9.0/24 via 192.0.2.9 dev eth0 proto boot",
    ]);
    expect(notices.filter((notice) => notice.action === "delete")).toEqual([]);
  });
});

describe("what an earlier configuration left (A16)", () => {
  test("another VNI: the old device goes, with everything on it", async () => {
    await using node = await Node.create("vni");
    const before = await node.drive(vxlanBackend({ VNI: 7 }));
    await before.start(peerOf(2));
    await before.stop();
    await using after = await node.drive();
    await after.start(peerOf(2));
    const links = await node.kernel.links();
    expect(links.filter((link) => link.type === "vxlan").map((link) => link.name)).toEqual([
      "flannel.1",
      "flannel-v6.1",
    ]);
    expect(await showDataPath(node.ns)).toEqual([...vxlanOwnLines(), ...vxlanPeerLines(2)].sort());
    expect(after.log.messages()).toContain("removed device flannel.7, left by an earlier configuration");
  });

  test("another network: addresses, routes and nexthops of the old one go", async () => {
    await using node = await Node.create("network");
    const before = await node.drive();
    await before.start(peerOf(2));
    await before.stop();
    // The old network is known from the subnet file of the last run.
    await using after = await node.drive(vxlanBackend({}, { ipv4: true, ipv6: false }), {
      networks: ["10.77.0.0/16", "10.5.0.0/16", "fd00:5::/32"],
    });
    await after.driver.prepare();
    await after.driver.attach({ subnets: { ipv4: "10.77.1.0/24" } });
    await after.update([]);
    expect(await showDataPath(node.ns)).toEqual(["address 10.77.1.0/32 flannel.1"]);
    expect<unknown>(await node.ns.json("ip", "-j", "nexthop", "show")).toEqual([]);
  });

  test("another port: the device is made anew and keeps the MAC that peers know", async () => {
    await using node = await Node.create("port");
    await node.ns.ip(
      "link add flannel.1 address 76:af:5e:12:2e:67 type vxlan id 1 local 192.0.2.1 dev eth0 dstport 4789 nolearning",
    );
    await using drive = await node.drive();
    await drive.start(peerOf(2));
    expect(await node.kernel.link("flannel.1")).toMatchObject({
      mac: "76:af:5e:12:2e:67",
      vxlan: { port: 8472 },
    });
    expect(drive.log.lines.find((line) => line.level === "warn")).toMatchObject({
      message: "making device flannel.1 anew",
      fields: { differences: ["port 4789, wanted 8472"] },
    });
  });
});

test("an update writes the difference only", async () => {
  await using node = await Node.create("update");
  await using drive = await node.drive();
  await drive.start(peerOf(2), peerOf(3));
  drive.resetWrites();
  await drive.update([peerOf(3)]);
  expect(drive.writes.changes).toBe(0);
  await drive.update([peerOf(3, { address: "192.0.2.77" })]);
  expect(drive.writes.changes).toBe(1);
  await untilDataPath(node.ns, [
    ...vxlanOwnLines(),
    ...vxlanPeerLines(2),
    ...vxlanPeerLines(3, { address: "192.0.2.77" }),
  ]);
});
