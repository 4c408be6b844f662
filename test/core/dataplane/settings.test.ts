import { expect, test } from "bun:test";
import { Settings } from "../../../core/dataplane/settings.ts";
import { Health } from "../../../core/observe/health.ts";
import { until } from "../../lab/until.ts";
import { RecordingLog } from "../observe/recording-log.ts";
import { Node, peerOf, vxlanBackend } from "./node.ts";

const DEVICES = ["flannel.1", "flannel-v6.1"];

/** Resolves when the node has looked at everything again. */
async function healMtu(node: Node): Promise<void> {
  await node.ns.ip("link set flannel.1 mtu 1300");
  await until(async () => (await node.kernel.link("flannel.1"))?.mtu === 1450, {
    message: "the MTU stays changed",
  });
}

test("checksum offload is set on our devices, kept so, and written only when it differs", async () => {
  await using node = await Node.create("offload");
  await using drive = await node.drive(vxlanBackend({ ChecksumOffload: "off" }));
  await drive.run(peerOf(2));
  const are = async (on: boolean) => {
    const states = await Promise.all(DEVICES.map((dev) => node.kernel.txChecksum(dev)));
    return states.every((state) => state === on);
  };
  await until(() => are(false), { message: "the offload is still on" });
  await node.ns.exec("ethtool", "-K", "flannel.1", "tx-checksum-ip-generic", "on");
  await until(() => are(false), { message: "the offload was not turned off again" });
  const { links } = drive.writes;
  await healMtu(node);
  // The MTU, nothing else.
  expect(drive.writes.links).toBe(links + 1);
});

test("auto touches nothing", async () => {
  await using node = await Node.create("auto");
  await using drive = await node.drive();
  await drive.run(peerOf(2));
  await node.ns.exec("ethtool", "-K", "flannel.1", "tx-checksum-ip-generic", "off");
  await healMtu(node);
  expect(await node.kernel.txChecksum("flannel.1")).toBe(false);
  expect(await node.kernel.txChecksum("flannel-v6.1")).toBe(true);
});

test("a refused offload is a finding until it succeeds, and keeps nothing else from being set", async () => {
  await using node = await Node.create("refused");
  const written: string[] = [];
  const health = new Health(new RecordingLog());
  const settings = new Settings({
    kernel: node.kernel,
    health,
    writeSysctl: ({ path }) => {
      written.push(path);
      return undefined;
    },
  });
  const offload = { kind: "offload", dev: "lo", feature: "tx-checksum-ip-generic", on: false } as const;
  settings.stage([offload, { kind: "sysctl", path: "net/ipv4/x", value: "1" }]);
  await settings.apply();
  expect(written).toEqual(["net/ipv4/x"]);
  expect(health.list()).toMatchObject([{ code: "OFFLOAD_REFUSED", severity: "warning" }]);
  settings.stage([{ ...offload, on: true }]);
  await settings.apply();
  expect(health.list()).toEqual([]);
});
