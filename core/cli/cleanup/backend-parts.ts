import { type ChosenBackend, chooseBackend, configureBackend } from "../../agent/backend.ts";
import { leaseRangesOf } from "../../agent/cloud.ts";
import { describeExternal, wishesOf } from "../../agent/prepare.ts";
import { pluginFlags } from "../../agent/settings.ts";
import { type NetworkConfig, type NetworkConfigReading, readNetworkConfig } from "../../config/network.ts";
import { gatherFacts } from "../../dataplane/facts.ts";
import { keepRunning } from "../../host/child.ts";
import { run } from "../../host/exec.ts";
import { look } from "../../host/interface/find.ts";
import { readLastBackend } from "../../host/last-backend.ts";
import { identifyNode } from "../../host/node-id.ts";
import { findNoted } from "../../host/process-note.ts";
import type { PreviousSubnetFile } from "../../host/subnet-file.ts";
import type { Kernel } from "../../netlink/kernel.ts";
import { describeError, Fault } from "../../observe/fault.ts";
import { type Log, silentLog } from "../../observe/log.ts";
import type { Registry } from "../../registry/registry.ts";
import type { ConfigState } from "../lease-access.ts";
import type { Options } from "../options.ts";
import { withNote } from "./left-routes.ts";
import { backendPart, type CleanupPart } from "./parts.ts";

/** What a backend made by itself, as far as it could be asked. */
export interface BackendParts {
  readonly parts: readonly CleanupPart[];
  /** What was not looked for, and why: the host, or the cloud, may still have it. */
  readonly unasked?: string;
  readonly notes: readonly string[];
}

export interface BackendPartsInput {
  /** The network config, or why it could not be read. */
  readonly config: ConfigState | Fault;
  readonly previous: PreviousSubnetFile;
  readonly options: Options;
  readonly discover: () => Registry;
  readonly kernel: Kernel;
  readonly log: Log;
}

/**
 * The parts of the backend that the network config names; without a config, of the one that ran last as far as it needs
 * no options. Never rejects: whatever cannot be asked must not keep the rest from being cleaned up.
 */
export async function findBackendParts(input: BackendPartsInput): Promise<BackendParts> {
  const { config, options } = input;
  const last = readLastBackend(options.subnetFile);
  if (config instanceof Fault || config.state !== "valid") {
    if (last === undefined) return { parts: [], notes: [] };
    const why = config instanceof Fault ? config.message : `the network config is ${config.state}`;
    return (await partsByDefault(last, input)) ?? unasked(last, why);
  }
  const { reading, document } = config;
  const { type } = reading.config.backend;
  const notes =
    last === undefined || last === type
      ? []
      : [`The backend of the last run was ${last}; what it made by itself may still be there.`];
  let made = last === type;
  try {
    const chosen = await chooseBackend(input.discover(), reading, document.source);
    const backend = configure(chosen, reading, input);
    made = backend.mode !== "declarative";
    return { parts: await partsOf(backend, chosen, reading, input), notes };
  } catch (error) {
    const why = describeError(error);
    if (made) return unasked(type, why);
    return { parts: [], notes: [`The backend of the network config was not asked what it made: ${why}.`] };
  }
}

function unasked(type: string, why: string): BackendParts {
  const text = `what the backend ${type} made by itself was not looked for: ${why.replace(/\.$/, "")}`;
  return { parts: [], unasked: `${text}; run cleanup again when that is mended`, notes: [] };
}

/** Of a backend that knows what it made without options; undefined for others. */
async function partsByDefault(type: string, input: BackendPartsInput): Promise<BackendParts | undefined> {
  const { ipv4, ipv6 } = input.previous.networks;
  const text = JSON.stringify({
    ...(ipv4 === undefined ? { EnableIPv4: false } : { Network: ipv4 }),
    ...(ipv6 === undefined ? {} : { EnableIPv6: true, IPv6Network: ipv6 }),
    Backend: { Type: type },
  });
  try {
    const reading = readNetworkConfig(text, "the last run");
    const chosen = await chooseBackend(input.discover(), reading, "the last run");
    const backend = configure(chosen, reading, input);
    if (backend.mode !== "active" || !backend.cleansUpUnaided) return undefined;
    return { parts: await partsOf(backend, chosen, reading, input), notes: [] };
  } catch {
    return undefined;
  }
}

function configure(
  chosen: ChosenBackend,
  { config }: NetworkConfigReading,
  { options }: BackendPartsInput,
): ReturnType<typeof configureBackend> {
  const { nodeId } = identifyNode({ wanted: options.nodeId ?? "", subnetFile: options.subnetFile });
  return configureBackend(chosen, config, nodeId, pluginFlags(options));
}

async function partsOf(
  backend: ReturnType<typeof configureBackend>,
  { loaded }: ChosenBackend,
  { config }: NetworkConfigReading,
  { options, kernel, log }: BackendPartsInput,
): Promise<readonly CleanupPart[]> {
  if (backend.mode === "cloud") {
    const facts = await gatherHost(kernel, config, options);
    const { cloudPart } = await import("../cloud-tables.ts");
    const { sync: timeout } = loaded.manifest.timeouts;
    const routes = cloudPart({ backend, ranges: leaseRangesOf(config), facts, timeout, log: silentLog });
    const part = withNote(routes, options.subnetFile);
    await part.look();
    return [part];
  }
  if (backend.mode !== "active") return [];
  const { signal } = new AbortController();
  const statePath = (name: string) => `${options.subnetFile}.${name}`;
  const services = { kernel, log, run, keepRunning, findLasting: findNoted, statePath };
  return [backendPart(backend, { ...services, wake() {}, signal })];
}

/** The host as a backend sees it. Throws Fault `INTERFACE_…` where the interface between the hosts cannot be told. */
async function gatherHost(kernel: Kernel, { families }: NetworkConfig, options: Options) {
  const { decision } = await look({ kernel, wish: wishesOf(options), families });
  if (!("choice" in decision)) throw decision.fault;
  const external = describeExternal(decision.choice, options);
  return gatherFacts(kernel, { external, devices: [], usesRoutes: false });
}
