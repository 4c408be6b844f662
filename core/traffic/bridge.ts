import { existsSync } from "node:fs";
import type { Families } from "../lease/lease.ts";
import type { Finding } from "../observe/finding.ts";
import { TRAFFIC } from "./findings.ts";

const SWITCHES = [
  ["ipv4", "/proc/sys/net/bridge/bridge-nf-call-iptables"],
  ["ipv6", "/proc/sys/net/bridge/bridge-nf-call-ip6tables"],
] as const;

/**
 * A warning for each family whose packets between pods on one bridge do not pass iptables, because the kernel's
 * br_netfilter is not loaded. Services then fail between pods of one node; whoever uses no bridge needs it not. Of
 * concern in iptables mode only.
 */
export function brNetfilterFindings(
  families: Families,
  exists: (file: string) => boolean = existsSync,
): readonly Finding[] {
  return SWITCHES.filter(([family, file]) => families[family] && !exists(file)).map(([, file]) => ({
    code: TRAFFIC.bridge,
    severity: "warning",
    title: "bridged packets do not pass iptables",
    text: `${file} is missing: a pod may not reach a service that is backed by a pod on the same node`,
    fix: "Load the kernel module: `modprobe br_netfilter`, and list it in /etc/modules-load.d; ignore this where pods are not on a bridge.",
  }));
}
