import { findInterface } from "../host/interface/find.ts";
import { dropStartupText } from "../host/memory.ts";
import { notifyServiceManager } from "../host/notify.ts";
import { requireNetAdmin } from "../host/privilege.ts";
import { assertSubnetFilePath, readSubnetFile } from "../host/subnet-file.ts";
import type { LeaseStore } from "../lease/store.ts";
import type { Kernel } from "../netlink/kernel.ts";
import { describeError } from "../observe/fault.ts";
import type { Health } from "../observe/health.ts";
import type { Log } from "../observe/log.ts";
import type { Registry } from "../registry/registry.ts";
import { sleep } from "../retry/backoff.ts";
import { Adaptation } from "./adapt.ts";
import { followHost } from "./host-watch.ts";
import { type PrepareInput, prepareBackend, understandConfig, wishesOf } from "./prepare.ts";
import { Session, type SessionInput } from "./session.ts";
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
const STOP_PATIENCE_MS = 1_000;

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

  const guard = new SubnetFileGuard(settings.subnetFile, log, health);
  const prepare: PrepareInput = { settings, kernel, log, health, signal, formerNetworks: previous.networks };
  const sessions: SessionInput = { settings, store, guard, log, health, signal };
  const first = await unlessStopped(signal, async () => {
    const understood = await understandConfig(await store.readConfig(signal), registry, health);
    const { families } = understood.reading.config;
    const choice = await findInterface({ kernel, wish: wishesOf(settings), families, log, signal });
    const prepared = await prepareBackend(prepare, understood, choice);
    return Session.open(sessions, prepared, previous.subnets);
  });
  if (!first) return;
  const adaptation = new Adaptation({ first, prepare, sessions, registry });
  await serve(input, kernel, store, guard, adaptation);
}

/** What `step` gives; undefined when a stop signal came meanwhile: that it failed or gave up then is no failure. */
async function unlessStopped<T>(signal: AbortSignal, step: () => Promise<T>): Promise<T | undefined> {
  try {
    return await step();
  } catch (error) {
    if (signal.aborted) return undefined;
    throw error;
  }
}

/** The first session, and those that follow from it, are served until aborted. */
async function serve(
  { settings, log, health, signal }: AgentInput,
  kernel: Kernel,
  store: LeaseStore,
  guard: SubnetFileGuard,
  adaptation: Adaptation,
): Promise<void> {
  const loops = [supervise("subnet file", () => guard.keep(signal), health, signal)];
  await Promise.race([adaptation.session.ready, aborted(signal)]);
  if (!signal.aborted) {
    log.info("ready", { peers: adaptation.session.peers.size, ms: Math.round(performance.now()) });
    notifyServiceManager("READY=1");
    const watch = {
      kernel,
      wish: wishesOf(settings),
      health,
      signal,
      current: () => adaptation.situation,
      changed: adaptation.toInterface,
    };
    loops.push(
      supervise("host", () => followHost(watch), health, signal),
      supervise("config", () => adaptation.followConfig(store), health, signal),
      trimMemory(signal),
    );
  }
  await aborted(signal);
  notifyServiceManager("STOPPING=1");
  await Promise.race([Promise.all(loops), sleep(STOP_PATIENCE_MS / 4)]);
  await adaptation.end(STOP_PATIENCE_MS);
  if (settings.subnetLeaseReleaseOnStop) await release(store, log);
  log.info("stopped");
}

async function release(store: LeaseStore, log: Log): Promise<void> {
  try {
    await Promise.race([store.release(), sleep(STOP_PATIENCE_MS / 2)]);
  } catch (error) {
    log.warn(`the lease could not be released: ${describeError(error)}`);
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
