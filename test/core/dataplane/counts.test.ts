/** What the data plane says about itself, on a real kernel. */
import { expect, test } from "bun:test";
import { ROUTE_PROTOCOL } from "../../../core/netlink/kernel.ts";
import { until } from "../../lab/until.ts";
import { macOf, Node, peerOf } from "./node.ts";

test("peers are counted, described as commands, and those that cannot be used are told apart", async () => {
  await using node = await Node.create("counts");
  const foreign = { ...peerOf(3), backendType: "host-gw" };
  await using drive = await (await node.drive()).start(peerOf(2), foreign);
  const { driver } = drive;
  expect(driver.counts()).toMatchObject({ wanted: 2, programmed: 1, refused: 0, unusable: 1, failing: 0 });
  const { objects, problems } = driver.describe(peerOf(2).key);
  expect(problems).toEqual([]);
  expect(objects.map(({ command }) => command)).toContain(
    `bridge fdb replace ${macOf(2)} dst 192.0.2.2 dev flannel.1 self permanent`,
  );
  expect(objects.every(({ error }) => error === undefined)).toBe(true);
  expect(driver.describe(foreign.key).problems).toHaveLength(1);
  expect(driver.describe("10.9.9.0-24")).toEqual({ objects: [], problems: [] });
});

test("every command that is shown makes its object", async () => {
  await using node = await Node.create("commands");
  await using drive = await (await node.drive()).start(peerOf(2));
  const shown = drive.driver.describe(peerOf(2).key).objects.map(({ command }) => command);
  const dump = async () =>
    await Promise.all([
      node.ns.exec("ip", "-4", "route", "show", "proto", String(ROUTE_PROTOCOL)),
      node.ns.exec("ip", "-6", "route", "show", "proto", String(ROUTE_PROTOCOL)),
      node.ns.exec("ip", "neighbour", "show", "dev", "flannel.1", "nud", "permanent"),
      node.ns.exec("bridge", "fdb", "show", "dev", "flannel.1"),
    ]);
  const before = await dump();
  const undo = [
    "ip route delete 10.5.2.0/24",
    "ip -6 route delete fd00:5:2::/64 dev flannel-v6.1",
    "ip nexthop flush",
    "ip neighbour flush dev flannel.1 nud permanent",
    `bridge fdb delete ${macOf(2)} dev flannel.1 dst 192.0.2.2 self`,
  ];
  await node.ns.exec("sh", "-ec", undo.join("\n"));
  expect(await dump()).not.toEqual(before);
  await node.ns.exec("sh", "-ec", shown.join("\n"));
  const after = await dump();
  expect(after.map((text) => text.split("\n").sort())).toEqual(before.map((text) => text.split("\n").sort()));
});

test("repairs are counted by kind and told with the peers concerned", async () => {
  await using node = await Node.create("repairs");
  await using drive = await (await node.drive()).run(peerOf(2), peerOf(3));
  const { stats, repaired } = drive;
  await until(() => drive.driver.counts().failing === 0 && stats.repairs.route === 0, {
    message: "not settled",
  });
  await node.ns.ip("route delete 10.5.2.0/24");
  await until(() => (stats.repairs.route ?? 0) > 0, { message: () => `no repair: ${JSON.stringify(stats)}` });
  expect(repaired.at(-1)?.owners).toEqual([peerOf(2).key]);
  expect(repaired.at(-1)?.objects.route).toBe(1);
  await node.ns.ip("link delete flannel.1");
  await until(() => (stats.repairs.link ?? 0) === 1, {
    message: () => `no repair: ${JSON.stringify(stats)}`,
  });
});
