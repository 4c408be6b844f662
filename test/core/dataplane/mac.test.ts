import { describe, expect, test } from "bun:test";
import { until } from "../../lab/until.ts";
import { Node, peer4Of, vxlanBackend } from "./node.ts";
import { untilDataPath, vxlanOwnLines, vxlanPeerLines } from "./oracle.ts";

const IPV4 = { ipv4: true, ipv6: false };
const REWRITTEN = "02:00:00:00:00:77";

test("the MAC is given with the creation, so that udev's policy leaves the device alone", async () => {
  await using node = await Node.create("assign");
  await using drive = await node.drive(vxlanBackend({}, IPV4));
  await drive.start();
  // NET_ADDR_SET (linux/netdevice.h); a MAC of the kernel's own making would be 1, random.
  expect((await node.ns.exec("cat", "/sys/class/net/flannel.1/addr_assign_type")).trim()).toBe("3");
});

describe("a MAC rewritten after the creation, as udev does, is what the lease says in the end (A20)", () => {
  test.each([0, 20, 60, 120, 200])("%i ms after", async (delay) => {
    await using node = await Node.create("udev");
    const { kernel, ns } = node;
    const create = kernel.createLink.bind(kernel);
    let rewriting: Promise<unknown> = Promise.resolve();
    kernel.createLink = async (link) => {
      await create(link);
      rewriting = Bun.sleep(delay).then(() => ns.ip(`link set ${link.name} address ${REWRITTEN}`));
    };
    await using drive = await node.drive(vxlanBackend({}, IPV4));
    await drive.run(peer4Of(2));
    await rewriting;
    await until(() => JSON.stringify(drive.published.at(-1)).includes(REWRITTEN), {
      message: `published ${REWRITTEN}`,
      deadline: 3_000,
    });
    expect((await kernel.link("flannel.1"))?.mac).toBe(REWRITTEN);
    await untilDataPath(ns, [vxlanOwnLines()[0]!, ...vxlanPeerLines(2).slice(0, 3)]);
    // The rewritten one is what the peers know now: a device made again gets that one.
    kernel.createLink = create;
    await ns.ip("link delete flannel.1");
    await untilDataPath(ns, [vxlanOwnLines()[0]!, ...vxlanPeerLines(2).slice(0, 3)]);
    expect((await kernel.link("flannel.1"))?.mac).toBe(REWRITTEN);
    expect(drive.published.length).toBeLessThanOrEqual(2);
    expect(drive.health.list()).toEqual([]);
  });
});

test("with --public-ip of a NAT the device sends from the interface's own address (A22)", async () => {
  await using node = await Node.create("nat");
  const external = { ...(await node.external()), publicIP: "203.0.113.5" };
  await using drive = await node.drive(vxlanBackend({}, IPV4), { external });
  await drive.start(peer4Of(2));
  expect((await node.kernel.link("flannel.1"))?.vxlan?.local).toBe("192.0.2.1");
});

test("a start that fails half-way leaves no device of its own, but one that was there before", async () => {
  await using node = await Node.create("abandon");
  await node.ns.ip("link add flannel.1 type vxlan id 1 local 192.0.2.1 dev eth0 dstport 8472 nolearning");
  // Another one's device has the VNI and port that the second device needs.
  await node.ns.ip("link add other6 type vxlan id 1 local 2001:db8::1 dev eth0 dstport 8472 nolearning");
  await using drive = await node.drive();
  expect(drive.driver.prepare()).rejects.toMatchObject({
    code: "LINK_CONFLICT",
    message: expect.stringContaining("other6"),
  });
  await drive.driver.prepare().catch(() => {});
  await drive.driver.abandon();
  const names = (await node.kernel.links()).map((link) => link.name);
  expect(names).toContain("flannel.1");
  expect(names).not.toContain("flannel-v6.1");
});

test("a device that was created but could not be raised is given up, too", async () => {
  await using node = await Node.create("raise");
  const { kernel } = node;
  kernel.setLink = () => Promise.reject(new Error("no way up"));
  await using drive = await node.drive();
  expect(drive.driver.prepare()).rejects.toThrow("no way up");
  await drive.driver.prepare().catch(() => {});
  await drive.driver.abandon();
  expect((await kernel.links()).filter((link) => link.type === "vxlan")).toEqual([]);
});

test("a device that vanished while the host is read never makes the lease lose its MAC", async () => {
  await using node = await Node.create("vanish");
  const { kernel } = node;
  // One that is adopted, so that its MAC is not the one we would give it.
  await node.ns.ip(
    "link add flannel.1 address 76:af:5e:12:2e:67 type vxlan id 1 local 192.0.2.1 dev eth0 dstport 8472 nolearning",
  );
  await using drive = await node.drive(vxlanBackend({}, IPV4));
  await drive.run(peer4Of(2));
  const real = kernel.link.bind(kernel);
  let looks = 0;
  // Gone between being made sure of and being read: the second look at it finds nothing.
  kernel.link = async (name) => (name === "flannel.1" && ++looks % 3 === 0 ? undefined : real(name));
  await node.ns.ip("link set flannel.1 mtu 1300");
  await until(() => looks >= 6, { message: "two rounds", deadline: 5_000 });
  kernel.link = real;
  await untilDataPath(node.ns, [vxlanOwnLines()[0]!, ...vxlanPeerLines(2).slice(0, 3)]);
  expect(drive.published).toHaveLength(1);
});
