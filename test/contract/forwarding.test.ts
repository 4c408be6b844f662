/**
 * The contract of an active backend, for one that moves packets itself: it runs in a process inside the namespace, and
 * its peers are in its own table instead of the kernel's.
 */
import { describe, expect, test } from "bun:test";
import type { LeaseData, PeerDelta } from "flannel/sdk";
import { Node } from "../core/dataplane/node.ts";
import { showDataPath } from "../core/dataplane/oracle.ts";
import { bareFacts, deepFreeze, expectPlain, peerFrom, subnetsOf } from "./inputs.ts";
import { BY_MODE, onePerStack, type Setting } from "./plugins.ts";
import { RemoteBackend } from "./remote.ts";

const NOTHING: PeerDelta = { added: [], changed: [], removed: [] };
const facts = bareFacts();
const HERE = onePerStack(BY_MODE.active).filter(([, { subject }]) => subject.name === "udp");

/** A backend that is prepared and attached, and what it published. */
async function bring(setting: Setting, node: Node) {
  await using stack = new AsyncDisposableStack();
  const backend = stack.use(await RemoteBackend.start(node.ns, setting));
  const published = await backend.prepare(facts);
  const { mtu } = await backend.attach({ subnets: subnetsOf(1, setting.families) }, facts);
  const done = stack.move();
  const peer = (n: number) => peerFrom(n, published as LeaseData, setting.families);
  return { backend, published, mtu, peer, [Symbol.asyncDispose]: () => done.disposeAsync() };
}

describe.each(HERE)("%s", (_, setting) => {
  const perPeer = Number(setting.families.ipv4) + Number(setting.families.ipv6);

  test("publishes plain data under a type it serves, and the MTU its manifest promises", async () => {
    await using node = await Node.create("active");
    await using up = await bring(setting, node);
    expectPlain(up.published);
    expect(["udp", ""]).toContain(up.published.backendType);
    const { overhead } = setting.subject.manifest.backends[0] as { overhead: { ipv4: number; ipv6: number } };
    expect(up.mtu).toBe(1500 - (setting.families.ipv6 ? overhead.ipv6 : overhead.ipv4));
    for (const finding of await up.backend.health()) expectPlain(finding);
  });

  test("a sync is the whole truth: the delta may be right, missing or old, and doing it twice changes nothing", async () => {
    await using node = await Node.create("active");
    await using up = await bring(setting, node);
    const { backend } = up;
    const [two, three] = [up.peer(2), up.peer(3)];
    const routes = async () => Number((await backend.describe()).routes) / perPeer;
    const bare = await showDataPath(node.ns);
    const report = await backend.sync([two], deepFreeze({ ...NOTHING, added: [two] }), facts);
    expect(report).toEqual({ failed: [], unusable: [], mtu: up.mtu });
    expect(await routes()).toBe(1);
    await backend.sync([two, three], NOTHING, facts);
    expect(await routes()).toBe(2);
    const notices = await node.noticesDuring(async () => {
      await backend.sync([two, three], { ...NOTHING, added: [two], changed: [three] }, facts);
    });
    expect(notices).toEqual([]);
    await backend.sync([two], { ...NOTHING, removed: ["somebody else"] }, facts);
    expect(await routes()).toBe(1);
    await backend.sync([], NOTHING, facts);
    expect(await routes()).toBe(0);
    expect(await showDataPath(node.ns)).toEqual(bare);
  });

  test("stopping, or a crash, leaves device, address and routes, and the next run adopts them", async () => {
    await using node = await Node.create("active");
    const seen: unknown[] = [];
    for (const ends of ["stop", "crash", "stop"]) {
      let said: unknown;
      const notices = await node.noticesDuring(async () => {
        await using up = await bring(setting, node);
        said = up.published;
        await up.backend.sync([up.peer(2)], NOTHING, facts);
        if (ends === "stop") await up.backend.stop();
      });
      seen.push([said, await showDataPath(node.ns)]);
      // The device tells that it has somebody behind it, and that it has not; nothing else is touched after the first run.
      if (seen.length > 1) expect(notices.filter(({ kind }) => kind !== "link")).toEqual([]);
    }
    expect(seen[1]).toEqual(seen[0]);
    expect(seen[2]).toEqual(seen[0]);
  });

  test("a device that had offloads has none for a run without them, and the other way round", async () => {
    await using node = await Node.create("active");
    const seen: string[] = [];
    for (const Offload of ["auto", "off", "auto"]) {
      await using up = await bring({ ...setting, raw: { Offload } }, node);
      const features = await node.ns.exec("ethtool", "-k", "flannel0");
      seen.push(/^tcp-segmentation-offload: (\w+)/m.exec(features)?.[1] ?? "");
      expect((await up.backend.describe()).path).toStartWith(Offload === "off" ? "slow" : "fast");
    }
    expect(seen).toEqual(["on", "off", "on"]);
  });

  test("what somebody changed on the device is set right by the next sync", async () => {
    await using node = await Node.create("active");
    await using up = await bring(setting, node);
    const whole = await showDataPath(node.ns);
    await node.ns.ip("address flush dev flannel0 scope global");
    await node.ns.ip("address add 10.5.9.9/32 dev flannel0");
    await node.ns.ip("link set flannel0 mtu 1300 down");
    await up.backend.sync([], NOTHING, facts);
    expect(await showDataPath(node.ns)).toEqual(whole);
    expect(await node.kernel.link("flannel0")).toMatchObject({ mtu: up.mtu, up: true });
    await node.ns.ip("link delete flannel0");
    await up.backend.sync([up.peer(2)], NOTHING, facts);
    expect(await showDataPath(node.ns)).toEqual(whole);
    expect(Number((await up.backend.describe()).routes)).toBe(perPeer);
  });

  test("cleaning up says what it would remove, removes exactly that, and a second time nothing", async () => {
    await using node = await Node.create("active");
    const bare = await showDataPath(node.ns);
    await using up = await bring(setting, node);
    const { backend } = up;
    await backend.sync([up.peer(2), up.peer(3)], NOTHING, facts);
    const whole = await showDataPath(node.ns);
    const announced = await backend.cleanup({ dryRun: true });
    expect(announced.length).toBeGreaterThan(0);
    expect(await showDataPath(node.ns)).toEqual(whole);
    expect(await backend.cleanup({ dryRun: false })).toEqual(announced);
    expect(await showDataPath(node.ns)).toEqual(bare);
    expect(await backend.cleanup({ dryRun: false })).toEqual([]);
  });

  test("one peer that cannot be used is named and does not keep the others from it", async () => {
    await using node = await Node.create("active");
    await using up = await bring(setting, node);
    const of = (data: unknown) => ({
      ...up.peer(2),
      ...(setting.families.ipv4 ? { ipv4: { subnet: "10.5.2.0/24", publicIP: "192.0.2.2", data } } : {}),
      ...(setting.families.ipv6 ? { ipv6: { subnet: "fd00:5:2::/64", publicIP: "2001:db8::2", data } } : {}),
    });
    for (const data of [["garbage"], 7, { Port: 0 }, { Port: "8285" }, { Port: 70_000 }]) {
      const { failed, unusable = [] } = await up.backend.sync([of(data), up.peer(3)], NOTHING, facts);
      expect(failed).toEqual([]);
      expect(unusable.map(({ key }) => key)).toEqual([up.peer(2).key]);
      expect(unusable[0]?.reason).toContain("has no usable Port");
      expect(Number((await up.backend.describe()).routes)).toBe(perPeer);
    }
    const other = await up.backend.sync(
      [{ ...up.peer(2), backendType: "vxlan" }, up.peer(3)],
      NOTHING,
      facts,
    );
    expect(other.unusable?.[0]?.reason).toContain('uses backend "vxlan"');
  });
});
