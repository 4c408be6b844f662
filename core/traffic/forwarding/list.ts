import { attempt } from "../command.ts";
import type { TrafficHost } from "../host.ts";
import { ALL_FAMILIES, type Family } from "../intent.ts";
import { acceptsBothWays } from "./accepts.ts";
import type { DroppingChain } from "./chain.ts";
import { parseLegacyDrops, parseLegacyRules } from "./legacy.ts";
import { parseAcceptingRules, parseDroppingChains } from "./nftables.ts";

/** Command of iptables-legacy by family. */
const LEGACY: Readonly<Record<Family, string>> = { 4: "iptables-legacy", 6: "ip6tables-legacy" };

/** A chain that drops by policy, with the networks that its rules do not accept both ways. */
export interface Denial {
  readonly chain: DroppingChain;
  /** CIDR text of the networks whose packets it drops, as far as can be seen. */
  readonly networks: readonly string[];
}

/**
 * `nft -j list chains`, and `iptables-legacy-save -t filter` where there is such a table: the chains that drop by
 * policy. For those on the way of forwarded packets `nft -j list table` tells which of `networks` their rules do not
 * accept. Takes no lock, loads no module and makes no table. A command that fails shows nothing.
 */
export async function listDenials(
  host: TrafficHost,
  networks: Readonly<Partial<Record<Family, string>>>,
): Promise<readonly Denial[]> {
  const denials: Denial[] = [];
  if (host.has("nft")) {
    const { stdout } = await attempt(host.run, "nft", ["-j", "list", "chains"]);
    for (const chain of parseDroppingChains(stdout)) {
      const text = chain.hook === "forward" ? await listTable(host, chain) : "";
      denials.push(judge(chain, networks, (family) => parseAcceptingRules(text, family)));
    }
  }
  for (const family of ALL_FAMILIES) {
    const command = LEGACY[family];
    const save = `${command}-save`;
    if (!host.legacyTables(family)?.includes("filter") || !host.has(save)) continue;
    const { stdout } = await attempt(host.run, save, ["-t", "filter"]);
    for (const chain of parseLegacyDrops(stdout, command, family)) {
      denials.push(judge(chain, networks, () => parseLegacyRules(stdout)));
    }
  }
  return denials;
}

async function listTable(host: TrafficHost, { place }: DroppingChain): Promise<string> {
  if (place.kind !== "nftables") return "";
  const { stdout } = await attempt(host.run, "nft", ["-j", "list", "table", place.family, place.table]);
  return stdout;
}

function judge(
  chain: DroppingChain,
  networks: Readonly<Partial<Record<Family, string>>>,
  rulesOf: (family: Family) => ReturnType<typeof parseLegacyRules>,
): Denial {
  const denied = chain.families.flatMap((family) => {
    const network = networks[family];
    if (network === undefined) return [];
    return acceptsBothWays(rulesOf(family), chain.place.chain, network) ? [] : [network];
  });
  return { chain, networks: denied };
}
