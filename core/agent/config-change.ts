import type { NetworkConfig } from "../config/network.ts";
import { isLegal } from "../lease/allocate.ts";
import type { Subnets } from "../lease/lease.ts";

/** A config with its validated backend options. */
export interface ComparedConfig {
  readonly config: NetworkConfig;
  readonly options: unknown;
}

/** What a new version of the config means for a running node. */
export interface ConfigChange {
  /** Keys that can be applied while running. */
  readonly live: readonly string[];
  /** Keys that have to wait for a restart of the daemon. */
  readonly restart: readonly string[];
  /** Nothing but the traffic rules changes: the backend can go on as it is. */
  readonly rulesOnly: boolean;
}

/** What the running node brings to the comparison. */
export interface RunningNode {
  readonly subnets: Subnets;
  /** Whether the backend can be replaced while running. */
  readonly declarative: boolean;
}

/**
 * Compares two configs key by key. Another network, family, subnet size or backend type would take the subnet away
 * from running containers, so it waits for a restart; so does a range that no longer holds the own subnet.
 */
export function compareConfigs(
  before: ComparedConfig,
  after: ComparedConfig,
  node: RunningNode,
): ConfigChange {
  const live: string[] = [];
  const rules: string[] = [];
  const restart: string[] = [];
  const a = before.config;
  const b = after.config;
  const differ = (name: string, one: unknown, other: unknown, list: string[]) => {
    if (JSON.stringify(one) !== JSON.stringify(other)) list.push(name);
  };
  differ("EnableIPv4", a.families.ipv4, b.families.ipv4, restart);
  differ("EnableIPv6", a.families.ipv6, b.families.ipv6, restart);
  differ("Network", a.ipv4?.network, b.ipv4?.network, restart);
  differ("SubnetLen", a.ipv4?.subnetLen, b.ipv4?.subnetLen, restart);
  differ("IPv6Network", a.ipv6?.network, b.ipv6?.network, restart);
  differ("IPv6SubnetLen", a.ipv6?.subnetLen, b.ipv6?.subnetLen, restart);
  differ("Backend.Type", a.backend.type, b.backend.type, restart);
  if (restart.length === 0) {
    const ranges = { ...(b.ipv4 ? { ipv4: b.ipv4 } : {}), ...(b.ipv6 ? { ipv6: b.ipv6 } : {}) };
    const bounds = isLegal(node.subnets, ranges) === undefined ? live : restart;
    differ(
      "SubnetMin/SubnetMax",
      [a.ipv4?.subnetMin, a.ipv4?.subnetMax],
      [b.ipv4?.subnetMin, b.ipv4?.subnetMax],
      bounds,
    );
    differ(
      "IPv6SubnetMin/IPv6SubnetMax",
      [a.ipv6?.subnetMin, a.ipv6?.subnetMax],
      [b.ipv6?.subnetMin, b.ipv6?.subnetMax],
      bounds,
    );
    const options = node.declarative ? live : restart;
    for (const key of optionNames(before.options, after.options)) {
      differ(`Backend.${key}`, optionOf(before.options, key), optionOf(after.options, key), options);
    }
  }
  differ("EnableNFTables", a.enableNFTables, b.enableNFTables, rules);
  differ("MasqExclude", a.masqExclude, b.masqExclude, rules);
  const rulesOnly = rules.length > 0 && live.length === 0 && restart.length === 0;
  return { live: [...live, ...rules], restart, rulesOnly };
}

function optionNames(...options: readonly unknown[]): readonly string[] {
  return [...new Set(options.flatMap((each) => (typeof each === "object" && each ? Object.keys(each) : [])))];
}

function optionOf(options: unknown, key: string): unknown {
  return (options as Readonly<Record<string, unknown>> | undefined)?.[key];
}
