import { describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ActiveBackend, Host, PeerDelta } from "flannel/sdk";
import { Node } from "../core/dataplane/node.ts";
import { showDataPath } from "../core/dataplane/oracle.ts";
import { kernelIn, runIn } from "../lab/in-namespace.ts";
import { bareFacts, deepFreeze, expectPlain, peerFrom, subnetsOf } from "./inputs.ts";
import { BY_MODE, configure, onePerStack, type Setting } from "./plugins.ts";

const NOTHING: PeerDelta = { added: [], changed: [], removed: [] };

/** A machine, and what the daemon would hand to a backend on it. */
async function openMachine() {
  await using stack = new AsyncDisposableStack();
  const node = stack.use(await Node.create("active"));
  const controller = new AbortController();
  stack.defer(() => controller.abort());
  const directory = stack.adopt(mkdtempSync(join(tmpdir(), "flannel-active-")), (made) =>
    rmSync(made, { recursive: true }),
  );
  const host: Host = {
    kernel: stack.adopt(kernelIn(node.ns), (kernel) => kernel.close()),
    log: { info() {}, warn() {} },
    run: runIn(node.ns),
    runDirectory: directory,
    signal: controller.signal,
  };
  const done = stack.move();
  return { node, host, [Symbol.asyncDispose]: () => done.disposeAsync() };
}

/** A backend that is prepared and attached, and what it published. */
async function bring(
  setting: Setting,
  host: Host,
): Promise<{ backend: ActiveBackend; published: unknown; mtu: number }> {
  const backend = await configure(setting);
  if (backend.mode !== "active") throw new Error("not active");
  const facts = bareFacts();
  const published = await backend.prepare(host, facts);
  const { mtu } = await backend.attach(deepFreeze({ subnets: subnetsOf(1, setting.families) }), facts);
  return { backend, published, mtu };
}

/** Node n as a peer, with data a backend of this kind published. */
function peerOf(setting: Setting, n: number, published: unknown) {
  return peerFrom(n, published as Parameters<typeof peerFrom>[1], setting.families);
}

describe.each(onePerStack(BY_MODE.active))("%s", (_, setting) => {
  test("publishes plain data under a type it serves, and the MTU its manifest promises", async () => {
    await using machine = await openMachine();
    const { published, mtu } = await bring(setting, machine.host);
    expectPlain(published);
    const [served] = setting.subject.manifest.backends;
    expect([...setting.subject.manifest.backends.map(({ type }) => type), ""]).toContain(
      (published as { backendType: string }).backendType,
    );
    const overhead = served?.overhead ?? 0;
    const of = (family: "ipv4" | "ipv6") => (typeof overhead === "number" ? overhead : overhead[family]);
    const most = Math.max(setting.families.ipv4 ? of("ipv4") : 0, setting.families.ipv6 ? of("ipv6") : 0);
    expect(mtu).toBe(1500 - most);
  });

  test("a sync is the whole truth: the delta may be right, missing or old, and doing it twice changes nothing", async () => {
    await using machine = await openMachine();
    const { node, host } = machine;
    const { backend, published } = await bring(setting, host);
    const facts = bareFacts();
    const [two, three] = [2, 3].map((n) => peerOf(setting, n, published));
    if (!two || !three) throw new Error("two peers");
    const bare = await showDataPath(node.ns);
    const report = await backend.sync(deepFreeze([two]), deepFreeze({ ...NOTHING, added: [two] }), facts);
    expect(report).toEqual({ failed: [] });
    expectPlain(report);
    const alone = await showDataPath(node.ns);
    await backend.sync(deepFreeze([two, three]), NOTHING, facts);
    const both = await showDataPath(node.ns);
    expect(both.length).toBeGreaterThan(alone.length);
    const notices = await node.noticesDuring(async () => {
      await backend.sync(
        deepFreeze([two, three]),
        deepFreeze({ ...NOTHING, added: [two], changed: [three] }),
        facts,
      );
    });
    expect(notices).toEqual([]);
    await backend.sync(deepFreeze([two]), deepFreeze({ ...NOTHING, removed: ["somebody else"] }), facts);
    expect(await showDataPath(node.ns)).toEqual(alone);
    await backend.sync([], NOTHING, facts);
    expect(await showDataPath(node.ns)).toEqual(bare);
  });

  test("stopping leaves the data plane, and the next run adopts it", async () => {
    await using machine = await openMachine();
    const { node, host } = machine;
    const before = await bring(setting, host);
    const peers = deepFreeze([2, 3].map((n) => peerOf(setting, n, before.published)));
    await before.backend.sync(peers, NOTHING, bareFacts());
    const whole = await showDataPath(node.ns);
    await before.backend.stop();
    expect(await showDataPath(node.ns)).toEqual(whole);
    const notices = await node.noticesDuring(async () => {
      const after = await bring(setting, host);
      expect(after.published).toEqual(before.published);
      await after.backend.sync(peers, deepFreeze({ ...NOTHING, added: peers }), bareFacts());
    });
    expect(notices).toEqual([]);
  });

  test("cleaning up says what it would remove, removes exactly that, and a second time nothing", async () => {
    await using machine = await openMachine();
    const { node, host } = machine;
    const bare = await showDataPath(node.ns);
    const { backend, published } = await bring(setting, host);
    await backend.sync(deepFreeze([2, 3].map((n) => peerOf(setting, n, published))), NOTHING, bareFacts());
    const whole = await showDataPath(node.ns);
    const announced = await backend.cleanup({ dryRun: true });
    expect(announced.length).toBeGreaterThan(0);
    expect(await showDataPath(node.ns)).toEqual(whole);
    expect(await backend.cleanup({ dryRun: false })).toEqual(announced);
    expect(await showDataPath(node.ns)).toEqual(bare);
    expect(await backend.cleanup({ dryRun: false })).toEqual([]);
  });

  test("one peer that cannot be programmed is named and does not keep the others from it", async () => {
    await using machine = await openMachine();
    const { node, host } = machine;
    const { backend, published } = await bring(setting, host);
    const good = peerOf(setting, 3, published);
    const unreachable = { subnet: "10.5.2.0/24", publicIP: "203.0.113.9", data: ["garbage"] };
    const unreachable6 = { subnet: "fd00:5:2::/64", publicIP: "2001:db8:ffff::9", data: 7 };
    const bad = deepFreeze({
      ...peerOf(setting, 2, published),
      ...(setting.families.ipv4 ? { ipv4: unreachable } : {}),
      ...(setting.families.ipv6 ? { ipv6: unreachable6 } : {}),
    });
    await backend.sync(deepFreeze([good]), NOTHING, bareFacts());
    const alone = await showDataPath(node.ns);
    await backend.sync([], NOTHING, bareFacts());
    const { failed } = await backend.sync(deepFreeze([bad, good]), NOTHING, bareFacts());
    expect(new Set(failed.map(({ key }) => key))).toEqual(new Set([bad.key]));
    expect(failed[0]?.reason).not.toBe("");
    expect(await showDataPath(node.ns)).toEqual(alone);
  });

  test("its health, if it tells it, is a list of findings", async () => {
    await using machine = await openMachine();
    const { backend } = await bring(setting, machine.host);
    for (const finding of (await backend.health?.()) ?? []) expectPlain(finding);
  });
});
