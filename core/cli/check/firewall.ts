import type { Families } from "../../lease/lease.ts";
import type { Finding } from "../../observe/finding.ts";
import { brNetfilterFindings } from "../../traffic/bridge.ts";
import { forwardDeniedFinding, isOfIptables } from "../../traffic/forwarding/finding.ts";
import type { Denial } from "../../traffic/forwarding/list.ts";
import type { TrafficHost } from "../../traffic/host.ts";
import { type CheckItem, item } from "./item.ts";

/** What the daemon is told about rules. */
export interface FirewallWishes {
  readonly families: Families;
  readonly enableNFTables: boolean;
  readonly forwardRules: boolean;
  readonly ipMasq: boolean;
  /** UDP port that has to reach this host, undefined where the backend has none. */
  readonly port: number | undefined;
}

/** Whether packets of containers, and those between the hosts, get past the firewall of this host. */
export function checkFirewall(
  denials: readonly Denial[],
  wishes: FirewallWishes,
  host: TrafficHost,
): CheckItem {
  const chains = denials.map(({ chain }) => chain);
  const input = chains.filter(({ hook }) => hook === "input").map(({ name }) => name);
  const findings: Finding[] = [];
  for (const denial of denials) {
    if (denial.chain.hook === "forward" && denial.networks.length > 0)
      findings.push(forwardFinding(denial, wishes));
  }
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
  const shown = chains.map(({ name }) => `${name} drops by policy`);
  return item("firewall", [`rules by ${tool}`, ...shown].join(", "), findings);
}

/** Rules of ours help in the very chain that drops; what accepts in one table does not keep another from dropping. */
function forwardFinding(denial: Denial, { enableNFTables, forwardRules }: FirewallWishes): Finding {
  const finding = forwardDeniedFinding(denial, enableNFTables ? "nftables" : "iptables");
  if (!forwardRules || enableNFTables || !isOfIptables(denial.chain)) return finding;
  const fix = "Nothing to do: flanneld adds rules that accept those of the cluster network.";
  return { ...finding, severity: "info", fix };
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
