import { dropStartupText } from "../host/memory.ts";
import { rememberIdentity } from "../host/node-id.ts";
import { notifyServiceManager } from "../host/notify.ts";
import { requireNetAdmin } from "../host/privilege.ts";
import { assertSubnetFilePath, readSubnetFile } from "../host/subnet-file.ts";
import type { LeaseData } from "../lease/lease.ts";
import { PeerTable } from "../lease/peers.ts";
import type { HeldLease, LeaseStore } from "../lease/store.ts";
import type { Kernel } from "../netlink/kernel.ts";
import { describeError, Fault } from "../observe/fault.ts";
import type { Health } from "../observe/health.ts";
import type { Log } from "../observe/log.ts";
import type { Registry } from "../registry/registry.ts";
import { sleep } from "../retry/backoff.ts";
import { composeAttrs } from "./attrs.ts";
import { networksOf } from "./backend.ts";
import { followPeers } from "./peers.ts";
import { type Prepared, prepareBackend } from "./prepare.ts";
import { Publisher } from "./publisher.ts";
import type { Settings } from "./settings.ts";
import { SubnetFileGuard } from "./subnet-file-guard.ts";
import { supervise } from "./supervise.ts";

export interface AgentInput {
  readonly settings: Settings;
  readonly log: Log;
  readonly health: Health;
  readonly registry: Registry;
  readonly openStore: () => Promise<LeaseStore>;
  readonly openKernel: () => Promise<Kernel>;
  /** Aborted by the first stop signal. */
  readonly signal: AbortSignal;
}

/** Time the loops get to end after a stop signal; the whole stop has to take less than 2 s. */
const STOP_PATIENCE_MS = 1_200;

/**
 * The daemon from start to stop: config → interface → backend → devices → lease → addresses → subnet file → peers →
 * READY → loops, until aborted. Stopping leaves the data plane, the lease and the subnet file as they are.
 * Throws a Fault when the start cannot succeed; what it had made until then is removed again.
 */
export async function runAgent(input: AgentInput): Promise<void> {
  const { settings, log, health, registry, signal } = input;
  requireNetAdmin();
  assertSubnetFilePath(settings.subnetFile);
  for (const finding of registry.findings) health.raise(finding, finding.title);
  const previous = readSubnetFile(settings.subnetFile);
  for (const problem of previous.problems) log.warn(`${settings.subnetFile} of the last run: ${problem}`);
  await using resources = new AsyncDisposableStack();
  const kernel = resources.adopt(await input.openKernel(), (opened) => opened.close());
  const store = resources.adopt(await input.openStore(), (opened) => opened.close());
  log.info("lease store", { store: store.description });
  const prepared = await unlessStopped(signal, async () => {
    const document = await store.readConfig(signal);
    return prepareBackend({ settings, document, previous, kernel, registry, log, health, signal });
  });
  if (!prepared) return;
  const held = await acquireLease(input, store, prepared, previous.subnets);
  if (!held) return;
  rememberIdentity(settings.subnetFile, prepared.identity);
  await serve(input, store, prepared, held);
}

/** What `step` gives; undefined when a stop signal came meanwhile: that it failed or gave up then is no failure. */
async function unlessStopped<T>(signal: AbortSignal, step: () => Promise<T>): Promise<T | undefined> {
  try {
    const result = await step();
    return signal.aborted ? undefined : result;
  } catch (error) {
    if (signal.aborted) return undefined;
    throw error;
  }
}

/** Makes the devices and acquires the lease; if that fails, or is aborted, the devices are removed again. */
async function acquireLease(
  { log, signal }: AgentInput,
  store: LeaseStore,
  { config, external, identity, driver }: Prepared,
  previous: HeldLease["lease"]["subnets"],
): Promise<HeldLease | undefined> {
  try {
    const data = await driver.prepare();
    const held = await store.acquire(
      {
        ranges: {
          ...(config.ipv4 ? { ipv4: config.ipv4 } : {}),
          ...(config.ipv6 ? { ipv6: config.ipv6 } : {}),
        },
        attrs: composeAttrs(data, external, config.families, identity),
        previous,
      },
      signal,
    );
    log.info(`lease ${held.lease.key}`, {
      origin: held.origin,
      ...(held.reservation ? { reservation: true } : {}),
    });
    return held;
  } catch (error) {
    await abandon(driver, error);
    if (signal.aborted) return undefined;
    throw error;
  }
}

async function abandon(driver: Prepared["driver"], error: unknown): Promise<void> {
  try {
    await driver.abandon();
  } catch (second) {
    throw new Fault(
      "START_FAILED",
      `${describeError(error)}; undoing it failed too: ${describeError(second)}`,
      {
        hint: error instanceof Fault ? error.hint : "",
        cause: error,
      },
    );
  }
}

/** Programs what follows from the lease; if that fails, devices and a lease made just now are given up again. */
async function attach(store: LeaseStore, driver: Prepared["driver"], held: HeldLease): Promise<number> {
  try {
    return await driver.attach({ subnets: held.lease.subnets });
  } catch (error) {
    await abandon(driver, error);
    if (held.origin === "fresh") await store.release();
    throw error;
  }
}

/** The held lease is served until aborted. */
async function serve(
  input: AgentInput,
  store: LeaseStore,
  prepared: Prepared,
  held: HeldLease,
): Promise<void> {
  const { settings, log, health, signal } = input;
  const { config, external, identity, driver } = prepared;
  const mtu = await attach(store, driver, held);
  const guard = new SubnetFileGuard(settings.subnetFile, log, health);
  guard.set({ networks: networksOf(config), subnets: held.lease.subnets, mtu, ipMasq: settings.ipMasq });

  const publisher = new Publisher(store, health, signal);
  const events = {
    published: (data: LeaseData) =>
      publisher.publish(composeAttrs(data, external, config.families, identity)),
    mtu: (changed: number) => guard.setMtu(changed),
  };
  const ready = Promise.withResolvers<void>();
  const table = new PeerTable({ own: held.lease, ranges: { ...config } });
  const loops: Promise<void>[] = [
    supervise("lease", () => store.keep(held, () => {}, signal), health, signal),
    supervise("subnet file", () => guard.keep(signal), health, signal),
  ];
  if (driver.watchesPeers) {
    const synced = () => ready.resolve();
    const follow = () =>
      followPeers({ store, driver, table, families: config.families, log, health, synced, signal });
    loops.push(supervise("peers", follow, health, signal));
  } else {
    await driver.update(new Map(), { added: [], changed: [], removed: [] });
    ready.resolve();
  }
  await Promise.race([ready.promise, aborted(signal)]);
  if (!signal.aborted) {
    loops.push(supervise("data path", () => driver.run(events, signal), health, signal));
    log.info("ready", { peers: table.size, ms: Math.round(performance.now()) });
    notifyServiceManager("READY=1");
    loops.push(trimMemory(signal));
  }
  await aborted(signal);
  notifyServiceManager("STOPPING=1");
  await Promise.race([Promise.all(loops), sleep(STOP_PATIENCE_MS)]);
  await Promise.race([stop(input, store, driver), sleep(STOP_PATIENCE_MS / 3)]);
  log.info("stopped");
}

async function stop(
  { settings, log }: AgentInput,
  store: LeaseStore,
  driver: Prepared["driver"],
): Promise<void> {
  try {
    await driver.stop();
    if (settings.subnetLeaseReleaseOnStop) await store.release();
  } catch (error) {
    log.warn(`stopping: ${describeError(error)}`);
  }
}

/** Drops start-up pages once things are quiet, and again each quarter of an hour. */
async function trimMemory(signal: AbortSignal): Promise<void> {
  await sleep(1_000, signal);
  while (!signal.aborted) {
    dropStartupText();
    await sleep(900_000, signal);
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
