import type { Backend, ConfigureInput } from "../../plugins/sdk/backend.ts";
import type { HostFacts } from "../../plugins/sdk/facts.ts";
import type { NetworkConfig, NetworkConfigReading } from "../config/network.ts";
import { foldOptionNames, optionFault } from "../config/options.ts";
import type { Families, Subnets } from "../lease/lease.ts";
import { Fault, toFault } from "../observe/fault.ts";
import type { Finding } from "../observe/finding.ts";
import { checkBackend } from "../registry/contract.ts";
import type { Manifest } from "../registry/manifest.ts";
import type { LoadedPlugin, Registry } from "../registry/registry.ts";
import { checkRequirements, type Machine } from "../registry/requirements.ts";
import type { PluginFlags } from "./settings.ts";

/** A plugin with its options understood. */
export interface ChosenBackend {
  readonly loaded: LoadedPlugin;
  readonly options: unknown;
  /** Unknown option names and the like. */
  readonly warnings: readonly Finding[];
}

/**
 * Loads the plugin the config names and validates its options; used by the daemon and by `config check` alike.
 * Throws Fault `BACKEND_UNKNOWN`, `PLUGIN_…`, or `CONFIG_INVALID` with the place of each bad option.
 */
export async function chooseBackend(
  registry: Registry,
  reading: NetworkConfigReading,
  source: string,
): Promise<ChosenBackend> {
  const { backend, families } = reading.config;
  const loaded = await registry.load(backend.type);
  refuseFamilies(loaded, backend.type, families);
  const { plugin, manifest } = loaded;
  const folded = foldOptionNames(backend.options, plugin.optionNames, reading.document, source);
  const result = await validate(loaded, folded.options);
  if (result.issues) throw optionFault(result.issues, reading.document, source, manifest.secrets);
  return { loaded, options: result.value, warnings: folded.warnings };
}

async function validate({ plugin, manifest }: LoadedPlugin, options: Readonly<Record<string, unknown>>) {
  try {
    return await plugin.options["~standard"].validate(options);
  } catch (error) {
    throw toFault(error, "PLUGIN_FAILED", `plugin "${manifest.name}" cannot check its options: `);
  }
}

function refuseFamilies(loaded: LoadedPlugin, type: string, families: Families): void {
  const served = loaded.manifest.backends.find((each) => each.type === type || each.aliases.includes(type));
  if (!served) return;
  for (const family of ["ipv4", "ipv6"] as const) {
    if (!families[family] || served.families.includes(family)) continue;
    throw new Fault("BACKEND_FAMILY", `backend "${type}" has no ${family === "ipv4" ? "IPv4" : "IPv6"}`, {
      hint: `Turn ${family === "ipv4" ? "EnableIPv4" : "EnableIPv6"} off in the network config, or choose another backend.`,
    });
  }
}

/**
 * Throws Fault `PLUGIN_REQUIREMENT_MISSING`, with further ones in `others`, when this machine certainly lacks what the
 * plugin's manifest requires: without it the plugin could only fail later and less clearly.
 */
export function requireMachine(manifest: Manifest, machine?: Machine): void {
  const [first, ...others] = checkRequirements(manifest, machine)
    .filter((finding) => finding.severity === "error")
    .map(({ code, title, text, fix }) => new Fault(code, `${title}: ${text}`, { hint: fix }));
  if (first) throw new Fault(first.code, first.message, { hint: first.hint, others });
}

/**
 * Configures the chosen plugin; `last` are the networks of the last run. Throws Fault `PLUGIN_FAILED` when it throws or
 * returns no backend.
 */
export function configureBackend(
  chosen: ChosenBackend,
  config: NetworkConfig,
  nodeId: string,
  flags?: PluginFlags,
  last: Subnets = {},
): Backend {
  const { plugin, manifest } = chosen.loaded;
  const formerNetworks = findFormerNetworks(config, last);
  try {
    const input = { ...configureInput(chosen, config, nodeId, flags), ...formerNetworks };
    return checkBackend(plugin.configure(input), manifest.name);
  } catch (error) {
    throw toFault(error, "PLUGIN_FAILED", `plugin "${manifest.name}" cannot be configured: `);
  }
}

/**
 * Asks the plugin what is wrong before anything is made. Returns warnings; throws Fault with the code of the first
 * finding of severity `error`.
 */
export async function checkHost(
  chosen: ChosenBackend,
  config: NetworkConfig,
  nodeId: string,
  facts: HostFacts,
  flags?: PluginFlags,
): Promise<readonly Finding[]> {
  const { plugin, manifest } = chosen.loaded;
  if (!plugin.check) return [];
  let findings: readonly Finding[];
  try {
    findings = await plugin.check({ ...configureInput(chosen, config, nodeId, flags), facts });
  } catch (error) {
    throw toFault(error, "PLUGIN_FAILED", `plugin "${manifest.name}" failed its check: `);
  }
  const error = findings.find((finding) => finding.severity === "error");
  if (error) throw new Fault(error.code, `${error.title}: ${error.text}`, { hint: error.fix });
  return findings;
}

function configureInput(
  chosen: ChosenBackend,
  config: NetworkConfig,
  nodeId: string,
  flags: PluginFlags | undefined,
): ConfigureInput<unknown> {
  return {
    options: chosen.options,
    families: config.families,
    networks: networksOf(config),
    nodeId,
    ...(flags === undefined ? {} : { flags }),
  };
}

/** Networks of the last run that the config does not have any more. */
function findFormerNetworks(
  config: NetworkConfig,
  last: Subnets,
): Pick<ConfigureInput<unknown>, "formerNetworks"> {
  const { ipv4, ipv6 } = networksOf(config);
  const formerNetworks = {
    ...(last.ipv4 !== undefined && last.ipv4 !== ipv4 ? { ipv4: last.ipv4 } : {}),
    ...(last.ipv6 !== undefined && last.ipv6 !== ipv6 ? { ipv6: last.ipv6 } : {}),
  };
  return Object.keys(formerNetworks).length > 0 ? { formerNetworks } : {};
}

/** Cluster networks of the enabled families as CIDR text. */
export function networksOf(config: NetworkConfig): Subnets {
  return {
    ...(config.ipv4 ? { ipv4: config.ipv4.network } : {}),
    ...(config.ipv6 ? { ipv6: config.ipv6.network } : {}),
  };
}
