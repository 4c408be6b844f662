import { readFileSync } from "node:fs";
import { chooseBackend } from "../../agent/backend.ts";
import type { NetworkConfig } from "../../config/network.ts";
import { readNetworkConfig } from "../../config/network.ts";
import type { SubnetRange } from "../../lease/store.ts";
import { parsePrefix, prefixSize } from "../../net/prefix.ts";
import { Fault } from "../../observe/fault.ts";
import type { Finding } from "../../observe/finding.ts";
import type { Registry } from "../../registry/registry.ts";

/** What `flanneld config check` found. */
export interface ConfigReport {
  readonly text: string;
  readonly warnings: readonly Finding[];
}

/**
 * `flanneld config check FILE|-`: the same validation as at start, backend options included, with the values that
 * would be used. Throws Fault `CONFIG_FILE`, `CONFIG_INVALID`, `BACKEND_UNKNOWN` or `PLUGIN_…`.
 */
export async function checkConfig(file: string, registry: Registry): Promise<ConfigReport> {
  const source = file === "-" ? "standard input" : file;
  const reading = readNetworkConfig(readText(file, source), source);
  const chosen = await chooseBackend(registry, reading, source);
  return {
    text: describeConfig(reading.config, chosen.options, chosen.loaded.manifest.secrets),
    warnings: [...reading.warnings, ...chosen.warnings],
  };
}

function readText(file: string, source: string): string {
  try {
    return readFileSync(file === "-" ? 0 : file, "utf8");
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? "unreadable";
    throw new Fault("CONFIG_FILE", `cannot read ${source}: ${code}`, {
      hint: "Name a readable file with the network config, or - for standard input.",
      cause: error,
    });
  }
}

function describeConfig(config: NetworkConfig, options: unknown, secrets: readonly string[]): string {
  const lines = ["The network config is valid."];
  if (config.ipv4) lines.push(describeRange("IPv4", config.ipv4));
  if (config.ipv6) lines.push(describeRange("IPv6", config.ipv6));
  lines.push(`Backend:  ${config.backend.type} ${JSON.stringify(redact(options, secrets))}`);
  return `${lines.join("\n")}\n`;
}

function describeRange(name: string, range: SubnetRange): string {
  const { network, subnetLen, subnetMin, subnetMax } = range;
  return `${name}:     ${network}, one /${subnetLen} per node, ${subnetMin} to ${subnetMax} (${countSubnets(range)} nodes at most)`;
}

function countSubnets({ subnetLen, subnetMin, subnetMax }: SubnetRange): string {
  const first = parsePrefix(`${subnetMin}/${subnetLen}`);
  const last = parsePrefix(`${subnetMax}/${subnetLen}`);
  if (!first || !last) return "unknown";
  const count = (BigInt(last.base) - BigInt(first.base)) / BigInt(prefixSize(first)) + 1n;
  return count > 1_000_000n ? "over a million" : String(count);
}

function redact(options: unknown, secrets: readonly string[]): unknown {
  const hidden = new Set(secrets.map((secret) => secret.toLowerCase()));
  return JSON.parse(
    JSON.stringify(options ?? {}, (key, value) =>
      hidden.has(key.toLowerCase()) && value ? "[redacted]" : value,
    ),
  );
}
