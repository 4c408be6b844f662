import { expect } from "bun:test";
import type { DeclarativeBackend, Peer } from "flannel/sdk";
import { Node, OWN } from "../core/dataplane/node.ts";
import { showDataPath } from "../core/dataplane/oracle.ts";
import { peerFrom, readyFacts } from "./inputs.ts";
import { BY_MODE, configureDeclarative, onePerStack, type Setting } from "./plugins.ts";

/** Modules that every kernel has on which the tests run; plugins that require others are tried in a guest. */
const EVERYWHERE: ReadonlySet<string> = new Set(["vxlan", "tun"]);

/** The declarative plugins, one setting per stack, for this kernel or for that of a guest. */
export function kernelSettings(where: "here" | "guest") {
  return onePerStack(BY_MODE.declarative).filter(([, { subject }]) => {
    const isCommon = subject.manifest.requires.kernelModules.every((name) => EVERYWHERE.has(name));
    return isCommon === (where === "here");
  });
}

/**
 * Starts a backend, gives it peers, stops it and starts it again: the data plane outlives it, a second start writes
 * nothing, and peers that go leave nothing.
 */
export async function expectKernelContract(setting: Setting): Promise<void> {
  const { families } = setting;
  const subnets = {
    ...(families.ipv4 ? { ipv4: OWN.ipv4 ?? "" } : {}),
    ...(families.ipv6 ? { ipv6: OWN.ipv6 ?? "" } : {}),
  };
  await using node = await Node.create("contract");
  const [second, third] = (await peersOf(setting)) as [Peer, Peer];
  const before = await node.drive(await configureDeclarative(setting));
  await before.startAs(subnets, [second]);
  const alone = await showDataPath(node.ns);
  await before.update([third]);
  const whole = await showDataPath(node.ns);
  expect(before.health.list()).toEqual([]);
  if (!(await configureDeclarative(setting)).ignoresPeers) expect(whole.length).toBeGreaterThan(alone.length);
  await before.stop();
  expect(await showDataPath(node.ns)).toEqual(whole);

  const after = await node.drive(await configureDeclarative(setting));
  const notices = await node.noticesDuring(async () => {
    await after.startAs(subnets, [second, third]);
  });
  expect(notices).toEqual([]);
  expect(after.writes.links).toBe(0);
  expect([after.published, after.mtus]).toEqual([before.published, before.mtus]);

  await after.update([], [third.key]);
  expect(await showDataPath(node.ns)).toEqual(alone);
  await after.update([], [second.key]);
  const routes = (await showDataPath(node.ns)).filter((line) => !line.startsWith("address "));
  expect(routes).toEqual([]);
  expect(await node.kernel.nexthops()).toEqual([]);
  await after.stop();
}

/** Peers 2 and 3 as their own backends publish them. */
function peersOf(setting: Setting): Promise<Peer[]> {
  return Promise.all(
    [2, 3].map(async (n) => {
      const backend: DeclarativeBackend = await configureDeclarative(setting, `node-${n}`);
      return peerFrom(n, backend.publish(readyFacts(backend)), setting.families);
    }),
  );
}
