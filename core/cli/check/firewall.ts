import { run } from "../../host/exec.ts";
import type { Families } from "../../lease/lease.ts";
import type { Finding } from "../../observe/finding.ts";
import { brNetfilterFindings } from "../../traffic/bridge.ts";
import type { TrafficHost } from "../../traffic/host.ts";
import { type CheckItem, item } from "./item.ts";

/** A chain that drops what no rule accepts. */
export interface DroppingChain {
  readonly hook: "forward" | "input";
  /** For people: `ip filter FORWARD` or `iptables-legacy FORWARD`. */
  readonly name: string;
}

/** What the daemon is told about rules. */
export interface FirewallWishes {
  readonly families: Families;
  readonly enableNFTables: boolean;
  readonly forwardRules: boolean;
  readonly ipMasq: boolean;
  /** UDP port that has to reach this host, undefined where the backend has none. */
  readonly port: number | undefined;
}

/** Chains of nf_tables and of iptables-legacy that drop by policy; loads no module and makes no table. */
export async function listDroppingChains(host: TrafficHost): Promise<readonly DroppingChain[]> {
  const found: DroppingChain[] = [];
  if (host.has("nft")) {
    const { stdout } = await run("nft", ["-j", "list", "chains"]);
    found.push(...parseDroppingChains(stdout));
  }
  for (const [family, command] of [
    [4, "iptables-legacy"],
    [6, "ip6tables-legacy"],
  ] as const) {
    if (!host.legacyTables(family)?.includes("filter") || !host.has(command)) continue;
    const { stdout } = await run(command, ["-w", "5", "-S"]);
    for (const [, chain = ""] of stdout.matchAll(/^-P (FORWARD|INPUT) DROP$/gm)) {
      found.push({ hook: chain === "FORWARD" ? "forward" : "input", name: `${command} ${chain}` });
    }
  }
  return found;
}

/** Reads `nft -j list chains`. */
export function parseDroppingChains(json: string): readonly DroppingChain[] {
  const { nftables = [] } = JSON.parse(json) as {
    nftables?: readonly {
      chain?: { family: string; table: string; name: string; hook?: string; policy?: string };
    }[];
  };
  return nftables.flatMap(({ chain }): DroppingChain[] => {
    if (chain?.policy !== "drop" || !["ip", "ip6", "inet"].includes(chain.family)) return [];
    if (chain.hook !== "forward" && chain.hook !== "input") return [];
    return [{ hook: chain.hook, name: `${chain.family} ${chain.table} ${chain.name}` }];
  });
}

/** Whether packets of containers, and those between the hosts, get past the firewall of this host. */
export function checkFirewall(
  chains: readonly DroppingChain[],
  wishes: FirewallWishes,
  host: TrafficHost,
): CheckItem {
  const namesOf = (hook: DroppingChain["hook"]) =>
    chains.filter((chain) => chain.hook === hook).map(({ name }) => name);
  const [forward, input] = [namesOf("forward"), namesOf("input")];
  const findings: Finding[] = [];
  for (const name of forward) findings.push(forwardFinding(name, isOvercome(name, wishes)));
  if (input.length > 0 && wishes.port !== undefined) {
    findings.push({
      code: "FIREWALL_INPUT",
      severity: "warning",
      title: "a firewall guards this host",
      text: `${input.join(", ")} drops what no rule accepts`,
      fix: `Make sure that UDP port ${wishes.port} is accepted from the other hosts.`,
    });
  }
  if (!wishes.enableNFTables) findings.push(...brNetfilterFindings(wishes.families));
  const tool = wishes.enableNFTables ? "nft" : "iptables";
  if ((wishes.forwardRules || wishes.ipMasq) && !host.has(tool)) findings.push(toolFinding(tool));
  const shown = [...forward, ...input].map((name) => `${name} drops by policy`);
  return item("firewall", [`rules by ${tool}`, ...shown].join(", "), findings);
}

/** The chains that iptables keeps, in either variant. */
const IPTABLES_FORWARD = /^(?:ip6? filter|ip6?tables-legacy) FORWARD$/;

/** Rules of ours help in the very chain that drops; what accepts in one table does not keep another from dropping. */
function isOvercome(name: string, { enableNFTables, forwardRules }: FirewallWishes): boolean {
  return forwardRules && !enableNFTables && IPTABLES_FORWARD.test(name);
}

function forwardFinding(chain: string, overcome: boolean): Finding {
  return {
    code: "FIREWALL_FORWARD",
    severity: overcome ? "info" : "warning",
    title: "forwarded packets are dropped by policy",
    text: `${chain} drops what no rule accepts`,
    fix: overcome
      ? "Nothing to do: flanneld adds rules that accept those of the cluster network."
      : "Accept packets from and to the cluster network in that chain; rules in other tables do not help.",
  };
}

function toolFinding(tool: string): Finding {
  return {
    code: "TRAFFIC_TOOL_MISSING",
    severity: "warning",
    title: "the command that sets the traffic rules is missing",
    text: `${tool} is not installed`,
    fix: `Install the package that has ${tool}, or turn the rules off (--ip-masq=false --iptables-forward-rules=false).`,
  };
}
