import type { Finding } from "../observe/finding.ts";
import type { Family, TrafficKind } from "./intent.ts";

/** Stable codes of everything the traffic rules report. */
export const TRAFFIC = {
  noTool: "TRAFFIC_NO_TOOL",
  fallback: "TRAFFIC_FALLBACK",
  locked: "TRAFFIC_LOCKED",
  failed: "TRAFFIC_FAILED",
  contested: "TRAFFIC_CONTESTED",
  leftovers: "TRAFFIC_LEFTOVERS",
  bridge: "TRAFFIC_BRIDGE_NETFILTER",
} as const;

/** Neither front end is installed for a family. */
export function noToolFinding(family: Family): Finding {
  const iptables = family === 4 ? "iptables" : "ip6tables";
  return {
    code: TRAFFIC.noTool,
    severity: "error",
    title: "the traffic rules cannot be set",
    text: `neither nft nor ${iptables} is installed: IPv${family} packets of pods are not masqueraded, nor accepted where forwarding is denied`,
    fix: `Install nftables or iptables, or turn the rules off (--ip-masq=false --iptables-forward-rules=false).`,
  };
}

/** The front end the config asks for is not installed, the other one is. */
export function fallbackFinding(family: Family, wanted: TrafficKind, used: string): Finding {
  const command = wanted === "nftables" ? "nft" : family === 4 ? "iptables" : "ip6tables";
  return {
    code: TRAFFIC.fallback,
    severity: "warning",
    title: "the traffic rules are not where the config wants them",
    text: `${command} is not installed, the IPv${family} rules are set with ${used} instead`,
    fix: `Install ${wanted}, or set "EnableNFTables" to ${wanted === "iptables"} in the network config.`,
  };
}

/** Somebody holds the lock of iptables-legacy. */
export function lockedFinding(text: string, fix: string): Finding {
  return {
    code: TRAFFIC.locked,
    severity: "warning",
    title: "the traffic rules have to wait",
    text,
    fix,
  };
}

/** The rules are not as they should be, for whatever reason. */
export function failedFinding(text: string, fix: string): Finding {
  return {
    code: TRAFFIC.failed,
    severity: "error",
    title: "the traffic rules are not as they should be",
    text,
    fix: fix || "It is tried again and again; look at the log around it.",
  };
}

/** What we write is changed again each time. */
export function contestedFinding(where: string): Finding {
  return {
    code: TRAFFIC.contested,
    severity: "warning",
    title: "the traffic rules do not stay as they are written",
    text: `something changes our rules (${where}) each time they are set; they are set again ever more slowly`,
    fix: "Find who changes them: `nft monitor` or `xtables-monitor -e`; a second flanneld on this host would do it.",
  };
}

/** Rules of an earlier configuration could not be removed. */
export function leftoversFinding(text: string, fix: string): Finding {
  return {
    code: TRAFFIC.leftovers,
    severity: "warning",
    title: "rules of an earlier configuration are still there",
    text,
    fix: fix || "It is tried again and again; look at the log around it.",
  };
}
