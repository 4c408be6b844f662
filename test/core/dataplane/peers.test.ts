import { describe, expect, test } from "bun:test";
import { until } from "../../lab/until.ts";
import { macOf, Node, peerOf, vxlanBackend } from "./node.ts";
import { showDataPath, vxlanOwnLines, vxlanPeerLines } from "./oracle.ts";

describe("a changed peer leaves nothing of its former self behind (A11, A15)", () => {
  const other = { mac: "02:00:00:00:00:99", address: "192.0.2.77" };
  test.each<[string, { mac?: string; address?: string }]>([
    ["the MAC", { mac: other.mac }],
    ["the address", { address: other.address }],
    ["both", other],
  ])("%s", async (_, change) => {
    await using node = await Node.create("changed");
    await using drive = await node.drive();
    await drive.start(peerOf(2), peerOf(3));
    await drive.update([peerOf(2, change)]);
    expect(await showDataPath(node.ns)).toEqual(
      [...vxlanOwnLines(), ...vxlanPeerLines(2, change), ...vxlanPeerLines(3)].sort(),
    );
  });

  test("two peers swap addresses, then MACs, then both, each in one change", async () => {
    await using node = await Node.create("swapped");
    await using drive = await node.drive();
    await drive.start(peerOf(2), peerOf(3));
    const rounds = [
      [{ address: "192.0.2.3" }, { address: "192.0.2.2" }],
      [{ mac: macOf(3) }, { mac: macOf(2) }],
      [
        { mac: macOf(3), address: "192.0.2.3" },
        { mac: macOf(2), address: "192.0.2.2" },
      ],
    ] as const;
    for (const [two, three] of rounds) {
      await drive.update([peerOf(2, two), peerOf(3, three)]);
      expect(await showDataPath(node.ns)).toEqual(
        [...vxlanOwnLines(), ...vxlanPeerLines(2, two), ...vxlanPeerLines(3, three)].sort(),
      );
      expect(drive.health.list()).toEqual([]);
    }
  });
});

test("two peers with one MAC: one finding that names both; the second takes over when the first leaves", async () => {
  await using node = await Node.create("cloned");
  await using drive = await node.drive();
  await drive.start(peerOf(2), peerOf(3, { mac: macOf(2) }), peerOf(4, { mac: macOf(2) }));
  const clashes = drive.health.list().filter((finding) => finding.code === "DATAPLANE_CLASH");
  expect(clashes.map((finding) => finding.text)).toEqual(
    ["flannel.1", "flannel-v6.1"].map(
      (dev) =>
        `fdb ${dev} ${macOf(2)} belongs to ${peerOf(2).key}, also wanted by ${peerOf(3).key}, ${peerOf(4).key}`,
    ),
  );
  const lines = drive.log.lines.length;
  await drive.update([peerOf(5)]);
  expect(drive.log.lines.length).toBe(lines);
  await drive.update([peerOf(4)], [peerOf(2).key]);
  const clone = { mac: macOf(2) };
  expect(await showDataPath(node.ns)).toEqual(
    [...vxlanOwnLines(), ...vxlanPeerLines(3, clone), ...vxlanPeerLines(4), ...vxlanPeerLines(5)].sort(),
  );
  expect(drive.health.list()).toEqual([]);
});

test("a refused route is a finding, and is tried again soon without any notice", async () => {
  await using node = await Node.create("refused");
  const { ns } = node;
  // Nobody but DirectRouting looks at foreign routes, so this backend's driver is told nothing of what helps here.
  await using drive = await node.drive({
    mode: "declarative",
    links: () => [],
    publish: () => ({ backendType: "plain" }),
    mtu: () => 1500,
    own: () => [],
    peer: (peer) => ({
      objects: peer.ipv4 ? [{ kind: "route", dst: peer.ipv4.subnet, via: "198.51.100.7", dev: "eth0" }] : [],
    }),
  });
  await drive.run();
  await drive.update([peerOf(2)]);
  expect(drive.health.list().map((finding) => finding.code)).toEqual(["DATAPLANE_REFUSED"]);
  expect(drive.health.list()[0]?.text).toStartWith(
    `2 of 2 objects; first: nexthop ${0x0a050200} (${peerOf(2).key}): `,
  );
  await ns.ip("route add 198.51.100.0/24 dev eth0 scope link");
  await until(() => drive.health.list().length === 0, { message: "the finding to go", deadline: 8_000 });
  const [route] = await ns.json("ip", "-j", "-4", "route", "show", "10.5.2.0/24");
  expect(route.gateway).toBe("198.51.100.7");
  expect(drive.log.messages("error")).toHaveLength(1);
});

test("a failure of the whole batch does not leave the kernel behind: the next update compares everything", async () => {
  await using node = await Node.create("failed");
  let failures = 1;
  const { kernel } = node;
  const apply = kernel.apply.bind(kernel);
  await using drive = await node.drive();
  await drive.start(peerOf(2));
  kernel.apply = (changes) => {
    if (failures-- > 0) return Promise.reject(new Error("socket lost"));
    return apply(changes);
  };
  expect(drive.update([peerOf(3)])).rejects.toThrow("socket lost");
  await drive.update([]);
  expect(await showDataPath(node.ns)).toEqual(
    [...vxlanOwnLines(), ...vxlanPeerLines(2), ...vxlanPeerLines(3)].sort(),
  );
});

test("a plan that throws is that peer's problem alone", async () => {
  await using node = await Node.create("throws");
  await using drive = await node.drive({
    mode: "declarative",
    links: () => [],
    publish: () => ({ backendType: "plain" }),
    mtu: () => 1500,
    own: () => [],
    peer(peer) {
      if (peer.key === peerOf(2).key) throw new Error("cannot divide by zero");
      return {
        objects: peer.ipv4 ? [{ kind: "route", dst: peer.ipv4.subnet, via: "192.0.2.9", dev: "eth0" }] : [],
      };
    },
  });
  await drive.start(peerOf(2), peerOf(3));
  expect(await showDataPath(node.ns)).toEqual(["route 10.5.3.0/24 via 192.0.2.9 dev eth0"]);
  await until(() => drive.health.has("PEER_UNUSABLE"), { message: "the finding" });
  expect(drive.health.list()[0]?.text).toBe(
    `1: ${peerOf(2).key} the backend cannot plan it: cannot divide by zero`,
  );
  await drive.stop();
  expect(drive.health.list()).toEqual([]);
});

test("5,000 peers", async () => {
  await using node = await Node.create("many");
  await using drive = await node.drive(vxlanBackend(), { networks: ["10.0.0.0/8", "fd00:5::/32"] });
  const peers = Array.from({ length: 5_000 }, (_, at) => {
    const [high, low] = [16 + (at >> 8), at & 255];
    const data = { VNI: 1, VtepMAC: `02:00:00:01:${high.toString(16)}:${low.toString(16).padStart(2, "0")}` };
    const subnet = `10.${high}.${low}.0/24`;
    return { key: subnet, backendType: "vxlan", ipv4: { subnet, publicIP: `198.18.${high}.${low}`, data } };
  });
  const begun = performance.now();
  await drive.start(...peers);
  const started = performance.now();
  expect((await node.kernel.routes(4, { protocol: 140 })).length).toBe(5_000);
  const dumped = performance.now();
  await drive.driver.update(new Map(), { added: [], changed: [], removed: peers.map((peer) => peer.key) });
  const removed = performance.now();
  expect((await node.kernel.routes(4, { protocol: 140 })).length).toBe(0);
  expect((await node.kernel.nexthops()).length).toBe(0);
  console.log(
    `5,000 peers: planned and written in ${Math.round(started - begun)} ms, removed in ${Math.round(removed - dumped)} ms`,
  );
});
