import { expect } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ActiveBackend, Host, LeaseData, PeerDelta } from "flannel/sdk";
import { Node } from "../core/dataplane/node.ts";
import { showDataPath } from "../core/dataplane/oracle.ts";
import { kernelIn, runIn } from "../lab/in-namespace.ts";
import { bareFacts, deepFreeze, expectPlain, peerFrom, subnetsOf } from "./inputs.ts";
import { BY_MODE, configure, onePerStack, type Setting } from "./plugins.ts";
import { asPublishedBy } from "./samples.ts";

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
    findLasting: () => [],
    keepRunning: () => {
      throw new Error("no processes here");
    },
    statePath: (name) => join(directory, name),
    wake() {},
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
function peerOf({ subject, families }: Setting, n: number, published: unknown) {
  return peerFrom(n, asPublishedBy(subject.name, n, published as LeaseData), families);
}

/** What of a data path can be seen: what lies in the kernel's tables, and the peers of WireGuard devices. */
async function showAll({ ns, kernel }: Node): Promise<readonly string[]> {
  const devices = (await kernel.links()).filter(({ type }) => type === "wireguard");
  const peers = await Promise.all(
    devices.map(async ({ name }) =>
      ((await kernel.wireguard(name))?.peers ?? [])
        .map((peer) => `${name} ${JSON.stringify({ ...peer, rxBytes: 0, txBytes: 0 })}`)
        .sort(),
    ),
  );
  return [...(await showDataPath(ns)), ...peers.flat()];
}

/** Active plugins that need a kernel of their own, because the machine's may lack their devices. */
const NEEDS_A_GUEST: ReadonlySet<string> = new Set(["wireguard"]);
/**
 * forwarding.test.ts is udp's. The parts of ipsec are tried in test/backends/ipsec and test/e2e: its charon belongs to a
 * whole machine.
 */
const TRIED_ELSEWHERE: ReadonlySet<string> = new Set(["udp", "ipsec"]);

/** The active plugins, one setting per stack, for this kernel or for that of a guest. */
export function activeSettings(where: "here" | "guest") {
  return onePerStack(BY_MODE.active)
    .filter(([, { subject }]) => !TRIED_ELSEWHERE.has(subject.name))
    .filter(([, { subject }]) => NEEDS_A_GUEST.has(subject.name) === (where === "guest"));
}

async function publish(setting: Setting): Promise<void> {
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
}

async function sync(setting: Setting): Promise<void> {
  await using machine = await openMachine();
  const { node, host } = machine;
  const { backend, published, mtu } = await bring(setting, host);
  const facts = bareFacts();
  const [two, three] = [2, 3].map((n) => peerOf(setting, n, published));
  if (!two || !three) throw new Error("two peers");
  const bare = await showAll(node);
  const report = await backend.sync(deepFreeze([two]), deepFreeze({ ...NOTHING, added: [two] }), facts);
  expect(report.failed).toEqual([]);
  expect(report.unusable ?? []).toEqual([]);
  // The interface is as it was.
  expect(report.mtu ?? mtu).toBe(mtu);
  expectPlain(report);
  const alone = await showAll(node);
  await backend.sync(deepFreeze([two, three]), NOTHING, facts);
  const both = await showAll(node);
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
  expect(await showAll(node)).toEqual(alone);
  await backend.sync([], NOTHING, facts);
  expect(await showAll(node)).toEqual(bare);
}

async function restart(setting: Setting): Promise<void> {
  await using machine = await openMachine();
  const { node, host } = machine;
  const before = await bring(setting, host);
  const peers = deepFreeze([2, 3].map((n) => peerOf(setting, n, before.published)));
  await before.backend.sync(peers, NOTHING, bareFacts());
  const whole = await showAll(node);
  await before.backend.stop();
  expect(await showAll(node)).toEqual(whole);
  const notices = await node.noticesDuring(async () => {
    const after = await bring(setting, host);
    expect(after.published).toEqual(before.published);
    await after.backend.sync(peers, deepFreeze({ ...NOTHING, added: peers }), bareFacts());
  });
  expect(notices).toEqual([]);
}

async function cleanUp(setting: Setting): Promise<void> {
  await using machine = await openMachine();
  const { node, host } = machine;
  const bare = await showAll(node);
  const { backend, published } = await bring(setting, host);
  await backend.sync(deepFreeze([2, 3].map((n) => peerOf(setting, n, published))), NOTHING, bareFacts());
  const whole = await showAll(node);
  const announced = await backend.cleanup({ dryRun: true });
  expect(announced.length).toBeGreaterThan(0);
  expect(await showAll(node)).toEqual(whole);
  expect(await backend.cleanup({ dryRun: false })).toEqual(announced);
  expect(await showAll(node)).toEqual(bare);
  expect(await backend.cleanup({ dryRun: false })).toEqual([]);
}

async function isolate(setting: Setting): Promise<void> {
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
  const alone = await showAll(node);
  await backend.sync([], NOTHING, bareFacts());
  const { failed, unusable = [] } = await backend.sync(deepFreeze([bad, good]), NOTHING, bareFacts());
  const named = [...failed, ...unusable];
  expect(new Set(named.map(({ key }) => key))).toEqual(new Set([bad.key]));
  expect(named[0]?.reason).not.toBe("");
  expect(await showAll(node)).toEqual(alone);
}

async function tellHealth(setting: Setting): Promise<void> {
  await using machine = await openMachine();
  const { backend } = await bring(setting, machine.host);
  for (const finding of (await backend.health?.()) ?? []) expectPlain(finding);
}

/** What every active backend promises: in words, and as a test. */
export const ACTIVE_CONTRACT: readonly (readonly [string, (setting: Setting) => Promise<void>])[] = [
  ["publishes plain data under a type it serves, and the MTU its manifest promises", publish],
  [
    "a sync is the whole truth: the delta may be right, missing or old, and doing it twice changes nothing",
    sync,
  ],
  ["stopping leaves the data plane, and the next run adopts it", restart],
  ["cleaning up says what it would remove, removes exactly that, and a second time nothing", cleanUp],
  ["one peer that cannot be programmed is named and does not keep the others from it", isolate],
  ["its health, if it tells it, is a list of findings", tellHealth],
];
