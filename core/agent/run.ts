import { findInterface } from "../host/interface/find.ts";
import { holdLock } from "../host/lock.ts";
import { collectEarly, dropCleanPages } from "../host/memory.ts";
import { notifyServiceManager } from "../host/notify.ts";
import { requireNetAdmin } from "../host/privilege.ts";
import { assertSubnetFilePath, readSubnetFile } from "../host/subnet-file.ts";
import { feedWatchdog } from "../host/watchdog.ts";
import type { LeaseStore } from "../lease/store.ts";
import type { Kernel } from "../netlink/kernel.ts";
import { describeError } from "../observe/fault.ts";
import type { Health } from "../observe/health.ts";
import { LatestFindings } from "../observe/latest-findings.ts";
import type { Log } from "../observe/log.ts";
import type { Registry } from "../registry/registry.ts";
import { untilAborted } from "../retry/abort.ts";
import { sleep } from "../retry/backoff.ts";
import type { TrafficManager } from "../traffic/manager.ts";
import type { MemberKeeper } from "../traffic/members/keeper.ts";
import { Adaptation } from "./adapt.ts";
import { openEndpoints } from "./endpoints.ts";
import { followHost } from "./host-watch.ts";
import { type BuildIdentity, Observation } from "./observation.ts";
import { type PrepareInput, prepareBackend, understandConfig, wishesOf } from "./prepare.ts";
import { Session, type SessionInput } from "./session.ts";
import type { Settings } from "./settings.ts";
import { SubnetFileGuard } from "./subnet-file-guard.ts";
import { supervise } from "./supervise.ts";
import { openMemberKeeper, openTraffic } from "./traffic.ts";

export interface AgentInput {
  readonly build: BuildIdentity;
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
  collectEarly();
  requireNetAdmin();
  assertSubnetFilePath(settings.subnetFile);
  await using resources = new AsyncDisposableStack();
  resources.use(holdLock(settings.subnetFile));
  for (const finding of registry.findings) health.raise(finding, finding.title);
  const previous = readSubnetFile(settings.subnetFile);
  for (const problem of previous.problems) log.warn(`${settings.subnetFile} of the last run: ${problem}`);
  const observation = new Observation(input);
  resources.use(openEndpoints(observation, log));
  const kernel = resources.adopt(await input.openKernel(), (opened) => opened.close());
  const store = resources.adopt(await input.openStore(), (opened) => opened.close());
  log.info("lease store", { store: store.description });
  Object.assign(observation, { kernel, store });

  const guard = new SubnetFileGuard(settings.subnetFile, log, health);
  const { dataplane: stats, loops, journal } = observation;
  const { networks: formerNetworks } = previous;
  const former = { ipv4: formerNetworks.ipv4 !== undefined, ipv6: formerNetworks.ipv6 !== undefined };
  const traffic = openTraffic(settings, former, health, log);
  const members = openMemberKeeper(settings, health, log);
  observation.ruleRepairs = () => traffic.repairs;
  const told = new LatestFindings(health);
  const checked = new LatestFindings(health);
  const prepare: PrepareInput = {
    settings,
    checked,
    kernel,
    store,
    log,
    health,
    stats,
    signal,
    formerNetworks,
  };
  const sessions: SessionInput = {
    ...{ settings, kernel, store, guard, traffic, members, log, health, loops, journal, signal },
  };
  const first = await unlessStopped(signal, async () => {
    const understood = await understandConfig(await store.readConfig(signal), registry, told);
    const { families } = understood.reading.config;
    const choice = await findInterface({ kernel, wish: wishesOf(settings), families, log, signal });
    const prepared = await prepareBackend({ ...prepare, starting: true }, understood, choice);
    return Session.open(sessions, prepared, previous.subnets);
  });
  if (!first) return;
  const adaptation = new Adaptation({ first, prepare, sessions, registry, told });
  observation.adaptation = adaptation;
  await serve(input, observation, { kernel, store, guard, traffic, members, adaptation });
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

/** What was made by the start. */
interface Parts {
  readonly kernel: Kernel;
  readonly store: LeaseStore;
  readonly guard: SubnetFileGuard;
  readonly traffic: TrafficManager;
  readonly members: MemberKeeper;
  readonly adaptation: Adaptation;
}

/** The first session, and those that follow from it, are served until aborted. */
async function serve(
  { settings, log, health, signal }: AgentInput,
  observation: Observation,
  { kernel, store, guard, traffic, members, adaptation }: Parts,
): Promise<void> {
  const supervision = { health, loops: observation.loops, signal };
  const loops = [
    supervise("subnet file", (pulse) => guard.keep(signal, pulse), supervision),
    supervise("traffic rules", (pulse) => traffic.run(signal, pulse), supervision),
    supervise("member filter", (pulse) => members.run(signal, pulse), supervision),
  ];
  // systemd's watchdog goes on during a stop. That one is bounded by itself, and may have to wait for a backend.
  const stopped = new AbortController();
  void feedWatchdog(() => signal.aborted || observation.loops.overdue().length === 0, stopped.signal);
  await Promise.race([adaptation.session.ready, untilAborted(signal)]);
  if (!signal.aborted) {
    observation.phase = "serving";
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
      supervise("host", (pulse) => followHost({ ...watch, pulse }), supervision),
      supervise("config", () => adaptation.followConfig(store), supervision),
      trimMemory(signal),
    );
  }
  await untilAborted(signal);
  observation.phase = "stopping";
  notifyServiceManager("STOPPING=1");
  await Promise.race([Promise.all(loops), sleep(STOP_PATIENCE_MS / 4)]);
  await adaptation.end(STOP_PATIENCE_MS);
  if (settings.subnetLeaseReleaseOnStop) await release(store, log);
  stopped.abort();
  log.info("stopped");
}

async function release(store: LeaseStore, log: Log): Promise<void> {
  try {
    await Promise.race([store.release(), sleep(STOP_PATIENCE_MS / 2)]);
  } catch (error) {
    log.warn(`the lease could not be released: ${describeError(error)}`);
  }
}

/** When clean pages are dropped: soon after READY, once things are quiet, then regularly; ms. */
const TRIM_AFTER_MS = [1_000, 4_000] as const;
const TRIM_EVERY_MS = 15_000;

async function trimMemory(signal: AbortSignal): Promise<void> {
  for (let turn = 0; !signal.aborted; turn++) {
    await sleep(TRIM_AFTER_MS[turn] ?? TRIM_EVERY_MS, signal);
    if (!signal.aborted) dropCleanPages();
  }
}
