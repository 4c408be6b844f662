/** The same data plane over the other kernels it may meet: one without nexthop objects, and one behind commands. */
import { describe, expect, test } from "bun:test";
import { commandKernelIn, kernelIn } from "../../lab/in-namespace.ts";
import { Node, peer4Of, peerOf } from "./node.ts";
import { showDataPath, untilDataPath, vxlanOwnLines, vxlanPeerLines } from "./oracle.ts";

const RIGHT = [...vxlanOwnLines(), ...vxlanPeerLines(2), ...vxlanPeerLines(3)].sort();

test("through `ip` and `bridge`: starts, is adopted without a change, heals, and lets peers go", async () => {
  await using node = await Node.create("commands", (ns) => commandKernelIn(ns));
  const before = await node.drive();
  await before.start(peerOf(2), peerOf(3));
  expect(await showDataPath(node.ns)).toEqual(RIGHT);
  await before.stop();
  await using after = await node.drive();
  await after.run(peerOf(2), peerOf(3));
  expect(after.writes).toEqual({ changes: 2, links: 0 });
  expect(after.published).toEqual(before.published);
  await node.ns.ip("route delete 10.5.3.0/24");
  // Every look, for notices too, takes a dozen processes.
  await untilDataPath(node.ns, RIGHT, 15_000);
  await node.ns.ip("link delete flannel.1");
  await untilDataPath(node.ns, RIGHT, 15_000);
  await after.update([], [peerOf(3).key]);
  expect(await showDataPath(node.ns)).toEqual([...vxlanOwnLines(), ...vxlanPeerLines(2)].sort());
}, 60_000);

describe("without nexthop objects", () => {
  /** Metrics of the IPv4 routes to peers 2 and 3: spread by their subnets. */
  const metrics = { 2: 1000 + ((0x0a050200 >>> 8) % 256), 3: 1000 + ((0x0a050300 >>> 8) % 256) };
  const spread = RIGHT.map((line) =>
    line.replace(/^(route 10\.5\.([23])\..*)$/, (_, route, n: "2" | "3") => `${route} metric ${metrics[n]}`),
  ).sort();
  const old = () =>
    Node.create("old", async (ns) =>
      Object.assign(kernelIn(ns), { nexthopObjects: false, nexthops: async () => [] }),
    );

  test("routes are spread over metrics, adopted without a change, and go", async () => {
    await using node = await old();
    const before = await node.drive();
    await before.start(peerOf(2), peerOf(3));
    expect(await showDataPath(node.ns)).toEqual(spread);
    await before.stop();
    await using after = await node.drive();
    const notices = await node.noticesDuring(async () => {
      await after.start(peerOf(2), peerOf(3));
    });
    expect(notices).toEqual([]);
    await after.update([], [peerOf(2).key, peerOf(3).key]);
    expect(await showDataPath(node.ns)).toEqual(vxlanOwnLines().sort());
  });

  test("after a kernel update the spread routes give way to nexthop objects", async () => {
    await using node = await old();
    const before = await node.drive();
    await before.start(peerOf(2), peerOf(3));
    await before.stop();
    using modern = kernelIn(node.ns);
    Object.assign(node.kernel, { nexthopObjects: true, nexthops: () => modern.nexthops() });
    await using after = await node.drive();
    await after.start(peerOf(2), peerOf(3));
    expect(await showDataPath(node.ns)).toEqual(RIGHT);
    expect(await modern.nexthops()).toHaveLength(2);
    await after.update([peer4Of(2)]);
    expect((await showDataPath(node.ns)).filter((line) => line.includes("fd00:5:2::"))).toEqual([]);
  });
});
