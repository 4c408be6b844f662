import type { ExternalInterface } from "../../plugins/sdk/facts.ts";
import { type NetworkConfig, type NetworkConfigReading, readNetworkConfig } from "../config/network.ts";
import { ActiveDriver } from "../dataplane/active.ts";
import { leftRoutesFile } from "../dataplane/cloud/left-routes.ts";
import { DeclarativeDriver } from "../dataplane/declarative.ts";
import type { Driver } from "../dataplane/driver.ts";
import { gatherFacts } from "../dataplane/facts.ts";
import type { DataplaneStats } from "../dataplane/stats.ts";
import { keepRunning } from "../host/child.ts";
import { run } from "../host/exec.ts";
import type { InterfaceChoice } from "../host/interface/choose.ts";
import type { InterfaceWishes } from "../host/interface/find.ts";
import { identifyNode, type NodeIdentity } from "../host/node-id.ts";
import { findNoted } from "../host/process-note.ts";
import { writeSysctl } from "../host/sysctl.ts";
import type { Subnets } from "../lease/lease.ts";
import type { ConfigDocument, LeaseStore } from "../lease/store.ts";
import { type Prefix, parsePrefix } from "../net/prefix.ts";
import type { Kernel } from "../netlink/kernel.ts";
import type { TunnelPacket } from "../netlink/objects.ts";
import type { Health } from "../observe/health.ts";
import type { LatestFindings } from "../observe/latest-findings.ts";
import type { Log } from "../observe/log.ts";
import type { Registry } from "../registry/registry.ts";
import { blackholeRoutes } from "../traffic/blackhole.ts";
import {
  type ChosenBackend,
  checkHost,
  chooseBackend,
  configureBackend,
  networksOf,
  requireMachine,
} from "./backend.ts";
import { openCloudDriver, reportLeftRoutes } from "./cloud.ts";
import { pluginFlags, type Settings } from "./settings.ts";

/** A network config with the backend it names, understood but not acted on. */
export interface Understood {
  readonly document: ConfigDocument;
  readonly reading: NetworkConfigReading;
  readonly chosen: ChosenBackend;
}

/** Everything needed before a lease may be asked for. */
export interface Prepared {
  readonly understood: Understood;
  readonly config: NetworkConfig;
  readonly choice: InterfaceChoice;
  readonly external: ExternalInterface;
  readonly identity: NodeIdentity;
  readonly driver: Driver;
  /** Whether the backend says what it wants as data, so that another one can take over seamlessly. */
  readonly declarative: boolean;
  /** Whether it may have a charon that runs on from an earlier run. */
  readonly keepsCharon: boolean;
  /** What only members may send here. */
  readonly membersOnly: readonly TunnelPacket[];
}

export interface PrepareInput {
  readonly settings: Settings;
  readonly kernel: Kernel;
  readonly log: Log;
  readonly health: Health;
  /** What the backend's own check of the host found. */
  readonly checked: LatestFindings;
  readonly stats: DataplaneStats;
  readonly signal: AbortSignal;
  /** Elections of the cluster, where the store has them. */
  readonly store: Pick<LeaseStore, "lead" | "takenSubnets">;
  /** The first session of this process: another backend may have run here before. */
  readonly starting?: boolean;
  /** Networks of the last run: what lies in them on this host is ours too. */
  readonly formerNetworks: Subnets;
}

/**
 * Validates a config and loads the plugin it names. Throws Fault `CONFIG_INVALID`, `BACKEND_UNKNOWN` or `PLUGIN_…`;
 * warnings become findings, and those of the config before are over.
 */
export async function understandConfig(
  document: ConfigDocument,
  registry: Registry,
  told: LatestFindings,
): Promise<Understood> {
  const reading = readNetworkConfig(document.text, document.source);
  const chosen = await chooseBackend(registry, reading, document.source);
  told.show([...reading.warnings, ...chosen.warnings], true);
  return { document, reading, chosen };
}

/** The flags that choose the interface. */
export function wishesOf(settings: Settings): InterfaceWishes {
  return {
    iface: settings.iface,
    ifaceRegex: settings.ifaceRegex,
    canReach: settings.ifaceCanReach ?? "",
    ...(settings.publicIp ? { publicIP: settings.publicIp } : {}),
    ...(settings.publicIpv6 ? { publicIPv6: settings.publicIpv6 } : {}),
  };
}

/**
 * Configures the backend for this host and interface. Makes nothing on the host yet. Throws a Fault for everything
 * that is wrong.
 */
export async function prepareBackend(
  input: PrepareInput,
  understood: Understood,
  choice: InterfaceChoice,
): Promise<Prepared> {
  const { settings, kernel, log, health, stats, signal } = input;
  const { chosen } = understood;
  const { config } = understood.reading;
  const external = describeExternal(choice, settings);
  const identity = identifyNode({
    wanted: settings.nodeId ?? "",
    subnetFile: settings.subnetFile,
    ...(external.mac === undefined ? {} : { mac: external.mac }),
  });
  requireMachine(chosen.loaded.manifest);
  const flags = pluginFlags(settings);
  const backend = configureBackend(chosen, config, identity.nodeId, flags, input.formerNetworks);
  const facts = await gatherFacts(kernel, { external, devices: [], usesRoutes: true });
  input.checked.show(await checkHost(chosen, config, identity.nodeId, facts, flags));
  const { name, version } = chosen.loaded.manifest;
  log.info(`backend ${config.backend.type}`, { plugin: name, version });
  if (input.starting) reportLeftRoutes(leftRoutesFile(settings.subnetFile), config.backend.type, health);
  const networks = ourNetworks(config, input.formerNetworks);
  const common = {
    kernel,
    external,
    networks,
    health,
    ...(settings.ipBlackholeRoute ? { extras: blackholeRoutes } : {}),
  };
  const driver =
    backend.mode === "declarative"
      ? new DeclarativeDriver({
          ...common,
          backend,
          writeSysctl,
          log,
          stats,
          ...(input.starting ? { starting: true } : {}),
        })
      : backend.mode === "cloud"
        ? await openCloudDriver(backend, config, {
            ...common,
            host: { log: log.child({ plugin: name }), signal },
            store: input.store,
            log: log.child({ plugin: name }),
            stats,
            timeout: chosen.loaded.manifest.timeouts.sync,
            left: { file: leftRoutesFile(settings.subnetFile), backend: config.backend.type },
          })
        : new ActiveDriver({
            ...common,
            backend,
            log,
            timeouts: chosen.loaded.manifest.timeouts,
            host: {
              kernel,
              log: log.child({ plugin: name }),
              run,
              keepRunning,
              findLasting: findNoted,
              statePath: (file) => `${settings.subnetFile}.${file}`,
              signal,
            },
          });
  return {
    understood,
    config,
    choice,
    external,
    identity,
    driver,
    declarative: backend.mode === "declarative",
    keepsCharon: backend.mode === "active" && backend.keepsPolicies === true,
    membersOnly: backend.mode === "cloud" ? [] : (backend.membersOnly ?? []),
  };
}

/** The interface as backends see it: its own addresses, and those that peers use. */
export function describeExternal(choice: InterfaceChoice, settings: Settings): ExternalInterface {
  const { link } = choice.candidate;
  const publicIP = choice.ipv4 === undefined ? undefined : settings.publicIp || choice.ipv4;
  const publicIPv6 = choice.ipv6 === undefined ? undefined : settings.publicIpv6 || choice.ipv6;
  return {
    name: link.name,
    index: link.index,
    mtu: link.mtu,
    ...(link.mac === undefined ? {} : { mac: link.mac }),
    ...(choice.ipv4 === undefined ? {} : { ipv4: choice.ipv4 }),
    ...(choice.ipv6 === undefined ? {} : { ipv6: choice.ipv6 }),
    ...(publicIP === undefined ? {} : { publicIP }),
    ...(publicIPv6 === undefined ? {} : { publicIPv6 }),
  };
}

/** Networks our objects lie in: those of the config, and those of the last run, whose leftovers are ours too. */
function ourNetworks(config: NetworkConfig, former: Subnets): readonly Prefix[] {
  const { ipv4, ipv6 } = networksOf(config);
  const texts = [ipv4, ipv6, former.ipv4, former.ipv6];
  return texts.flatMap((text) => (text === undefined ? [] : (parsePrefix(text) ?? [])));
}
