import { existsSync } from "node:fs";
import { run } from "../../host/exec.ts";
import { lastBackendFile } from "../../host/last-backend.ts";
import { holdLock, lockFileOf, lockHolder } from "../../host/lock.ts";
import { findDaemons } from "../../host/running.ts";
import { type PreviousSubnetFile, readSubnetFile } from "../../host/subnet-file.ts";
import { describeSubnets } from "../../lease/key.ts";
import { type Prefix, parsePrefix } from "../../net/prefix.ts";
import { openKernel } from "../../netlink/open.ts";
import { describeError, Fault, toFault } from "../../observe/fault.ts";
import { Health } from "../../observe/health.ts";
import type { Log } from "../../observe/log.ts";
import type { Registry } from "../../registry/registry.ts";
import { openTrafficHost } from "../../traffic/host.ts";
import { TrafficManager } from "../../traffic/manager.ts";
import { MemberKeeper } from "../../traffic/members/keeper.ts";
import { findBackendParts } from "../cleanup/backend-parts.ts";
import { findLeftRoutes } from "../cleanup/left-routes.ts";
import {
  type CleanupPart,
  charonPart,
  filePart,
  kernelPart,
  membersPart,
  trafficPart,
} from "../cleanup/parts.ts";
import { announce, commandLog } from "../command-log.ts";
import type { CommandLine } from "../flags.ts";
import { type ConfigState, readConfigState, withLeases } from "../lease-access.ts";
import type { Options } from "../options.ts";
import { print } from "../print.ts";
import { requireRoot } from "./ask.ts";
import type { Answered } from "./status.ts";

/** What `flanneld cleanup -o json` prints. */
export interface CleanupReport {
  readonly dryRun: boolean;
  /** What was found, and removed unless this is a dry run. */
  readonly plan: readonly string[];
  /** What a second look still found; empty for a dry run. */
  readonly left: readonly string[];
  readonly notes: readonly string[];
}

/**
 * `flanneld cleanup [--dry-run] [-o json]`: removes devices, routes, rules and files of this host's flanneld, and looks
 * again. Exit code 0 when nothing is left, 1 when something is.
 * @throws Fault `PRIVILEGE_MISSING`, `ALREADY_RUNNING`, `CLEANUP_UNSURE`, `NETLINK_…`.
 */
export async function cleanUp(line: CommandLine, discover: () => Registry): Promise<Answered> {
  const { options, output } = line;
  requireRoot("cleanup");
  announce(line);
  const dryRun = line.own.has("dry-run");
  await using resources = new AsyncDisposableStack();
  if (!dryRun && existsSync(lockFileOf(options.subnetFile))) resources.use(holdLock(options.subnetFile));
  const log = commandLog(line);
  const previous = readSubnetFile(options.subnetFile);
  const config = await readConfig(options, log);
  const networks = networksOf(previous, config);
  const others = findDaemons();
  refuseUnsure(networks, others, options);
  const kernel = resources.adopt(await openKernel(log, run), (opened) => opened.close());
  const host = openTrafficHost(run);
  resources.defer(() => host.generation?.close());
  const rules = { host, health: new Health(log), log, resync: 5_000 };
  const traffic = new TrafficManager(rules);
  const ofBackend = await findBackendParts({ config, previous, options, discover, kernel, log });
  const parts = [
    kernelPart(kernel, { networks, shared: others.length > 0 }),
    trafficPart(traffic, host),
    membersPart(new MemberKeeper(rules)),
    ...ofBackend.parts,
    charonPart(kernel, options.subnetFile),
    // The next cleanup has to know what this one could not look for.
    filePart(options.subnetFile, ofBackend.unasked ? [lastBackendFile(options.subnetFile)] : []),
  ];
  const plan = await lookAll(parts);
  const notes = [...ofBackend.notes, ...notesOf({ previous, config, options, dryRun })];
  if (output === "text") print(renderPlan(plan, dryRun));
  const failures = dryRun ? [] : await removeAll(parts);
  const unasked = [
    ...(ofBackend.unasked === undefined ? [] : [ofBackend.unasked]),
    ...findLeftRoutes(options.subnetFile, ofBackend.unasked === undefined ? typeOf(config) : undefined),
  ];
  if (dryRun) notes.push(...unasked);
  const left = dryRun ? [] : [...(await lookAll(parts)), ...failures, ...unasked];
  const report: CleanupReport = { dryRun, plan, left, notes };
  const text = output === "json" ? `${JSON.stringify(report, null, 2)}\n` : renderOutcome(report);
  return { text, code: left.length > 0 ? 1 : 0 };
}

/** The config in etcd, or why it could not be read: a host is also cleaned up after its cluster is gone. */
async function readConfig(options: Options, log: Log): Promise<ConfigState | Fault> {
  try {
    return await withLeases(options, log, readConfigState);
  } catch (error) {
    return toFault(error, "ETCD_REQUEST");
  }
}

/** The backend of the network config, as far as that is known. */
function typeOf(config: ConfigState | Fault): string | undefined {
  return config instanceof Fault || config.state !== "valid" ? undefined : config.reading.config.backend.type;
}

/** Networks of the last run and of the config; undefined when neither tells any. */
function networksOf(
  { networks }: PreviousSubnetFile,
  config: ConfigState | Fault,
): readonly Prefix[] | undefined {
  const now = config instanceof Fault || config.state !== "valid" ? undefined : config.reading.config;
  const texts = [networks.ipv4, networks.ipv6, now?.ipv4?.network, now?.ipv6?.network];
  const prefixes = texts.flatMap((text) => (text === undefined ? [] : (parsePrefix(text) ?? [])));
  return prefixes.length > 0 ? prefixes : undefined;
}

/** Where nothing tells which networks are meant, all of ours would go: also what another daemon here works with. */
function refuseUnsure(
  networks: readonly Prefix[] | undefined,
  others: readonly number[],
  { subnetFile }: Options,
): void {
  if (others.length === 0 || (networks !== undefined && existsSync(subnetFile))) return;
  throw new Fault(
    "CLEANUP_UNSURE",
    `there is no ${subnetFile}, and flanneld runs on this host (pid ${others.join(", ")})`,
    {
      hint: "Name the -subnet-file of the flanneld that is to be cleaned up after, or stop the one that runs.",
    },
  );
}

async function lookAll(parts: readonly CleanupPart[]): Promise<readonly string[]> {
  const found: string[] = [];
  for (const part of parts) found.push(...(await part.look()));
  return [...new Set(found)];
}

/** Removes all parts, whatever becomes of the others; returns what could not be done. */
async function removeAll(parts: readonly CleanupPart[]): Promise<readonly string[]> {
  const failures: string[] = [];
  for (const part of parts) {
    try {
      await part.remove();
    } catch (error) {
      failures.push(describeError(error));
    }
  }
  return failures;
}

interface NoteInput {
  readonly previous: PreviousSubnetFile;
  readonly config: ConfigState | Fault;
  readonly options: Options;
  readonly dryRun: boolean;
}

function notesOf({ previous, config, options, dryRun }: NoteInput): readonly string[] {
  const notes: string[] = [];
  const holder = dryRun ? lockHolder(options.subnetFile) : undefined;
  if (holder !== undefined)
    notes.push(`flanneld runs (pid ${holder}): cleanup will refuse until it is stopped.`);
  const { subnets, networks } = previous;
  const isUnknown = networks.ipv4 === undefined && networks.ipv6 === undefined;
  if (isUnknown && (config instanceof Fault || config.state !== "valid")) {
    const why = config instanceof Fault ? config.message : `the network config is ${config.state}`;
    notes.push(`No subnet file, and ${why}: only what carries flanneld's mark was looked for.`);
  }
  if (subnets.ipv4 ?? subnets.ipv6) {
    const argument = describeSubnets(subnets).replace(" and ", ",");
    notes.push(
      `The lease stays in etcd until it expires; to give it back now: flanneld leases release ${argument}`,
    );
  }
  return notes;
}

function renderPlan(plan: readonly string[], dryRun: boolean): string {
  if (plan.length === 0) return "Nothing of flanneld is on this host.\n";
  const head = dryRun ? "Would remove:" : "Removing:";
  return `${head}\n${plan.map((entry) => `  ${entry}\n`).join("")}`;
}

function renderOutcome({ dryRun, plan, left, notes }: CleanupReport): string {
  const lines = [...notes];
  if (left.length > 0) lines.unshift("Still there:", ...left.map((entry) => `  ${entry}`));
  else if (!dryRun && plan.length > 0) lines.unshift("Done: a second look finds nothing of it.");
  return lines.map((text) => `${text}\n`).join("");
}
