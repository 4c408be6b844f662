import type { ExternalInterface } from "../../plugins/sdk/facts.ts";
import { type NetworkConfig, type NetworkConfigReading, readNetworkConfig } from "../config/network.ts";
import { ActiveDriver } from "../dataplane/active.ts";
import { DeclarativeDriver } from "../dataplane/declarative.ts";
import type { Driver } from "../dataplane/driver.ts";
import { gatherFacts } from "../dataplane/facts.ts";
import { run } from "../host/exec.ts";
import type { InterfaceChoice } from "../host/interface/choose.ts";
import { findInterface } from "../host/interface/find.ts";
import { identifyNode, type NodeIdentity } from "../host/node-id.ts";
import type { PreviousSubnetFile } from "../host/subnet-file.ts";
import { writeSysctl } from "../host/sysctl.ts";
import type { ConfigDocument } from "../lease/store.ts";
import { type Prefix, parsePrefix } from "../net/prefix.ts";
import type { Kernel } from "../netlink/kernel.ts";
import type { Health } from "../observe/health.ts";
import type { Log } from "../observe/log.ts";
import type { Registry } from "../registry/registry.ts";
import { checkHost, chooseBackend, configureBackend, networksOf } from "./backend.ts";
import type { Settings } from "./settings.ts";

/** Everything the daemon needs before it may ask for a lease. */
export interface Prepared {
  readonly config: NetworkConfig;
  readonly external: ExternalInterface;
  readonly identity: NodeIdentity;
  readonly driver: Driver;
}

export interface PrepareInput {
  readonly settings: Settings;
  readonly document: ConfigDocument;
  readonly previous: PreviousSubnetFile;
  readonly kernel: Kernel;
  readonly registry: Registry;
  readonly log: Log;
  readonly health: Health;
  readonly signal: AbortSignal;
}

/**
 * Understands the config, finds the interface, loads and configures the backend. Makes nothing on the host yet.
 * Throws a Fault for everything that is wrong.
 */
export async function prepareBackend(input: PrepareInput): Promise<Prepared> {
  const { settings, document, kernel, registry, log, health, signal } = input;
  const reading = readConfig(document, health);
  const { config } = reading;
  const chosen = await chooseBackend(registry, reading, document.source);
  for (const finding of chosen.warnings) health.raise(finding, finding.text);
  const choice = await findInterface({
    kernel,
    wish: {
      iface: settings.iface,
      ifaceRegex: settings.ifaceRegex,
      canReach: settings.ifaceCanReach ?? "",
      ...(settings.publicIp ? { publicIP: settings.publicIp } : {}),
      ...(settings.publicIpv6 ? { publicIPv6: settings.publicIpv6 } : {}),
    },
    families: config.families,
    log,
    signal,
  });
  const external = describeExternal(choice, settings);
  const identity = identifyNode({
    wanted: settings.nodeId ?? "",
    subnetFile: settings.subnetFile,
    ...(external.mac === undefined ? {} : { mac: external.mac }),
  });
  const backend = configureBackend(chosen, config, identity.nodeId);
  const facts = await gatherFacts(kernel, { external, devices: [], usesRoutes: true });
  for (const finding of await checkHost(chosen, config, identity.nodeId, facts)) health.raise(finding);
  const { name, version } = chosen.loaded.manifest;
  log.info(`backend ${config.backend.type}`, { plugin: name, version });
  const driver =
    backend.mode === "declarative"
      ? new DeclarativeDriver({
          backend,
          kernel,
          external,
          networks: ourNetworks(config, input.previous),
          writeSysctl,
          health,
          log,
        })
      : new ActiveDriver({
          backend,
          kernel,
          external,
          health,
          host: { log: log.child({ plugin: name }), run, signal },
        });
  return { config, external, identity, driver };
}

function readConfig(document: ConfigDocument, health: Health): NetworkConfigReading {
  const reading = readNetworkConfig(document.text, document.source);
  for (const finding of reading.warnings) health.raise(finding, finding.text);
  return reading;
}

function describeExternal(choice: InterfaceChoice, settings: Settings): ExternalInterface {
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
function ourNetworks(config: NetworkConfig, previous: PreviousSubnetFile): readonly Prefix[] {
  const { ipv4, ipv6 } = networksOf(config);
  const texts = [ipv4, ipv6, previous.networks.ipv4, previous.networks.ipv6];
  return texts.flatMap((text) => (text === undefined ? [] : (parsePrefix(text) ?? [])));
}
