import type { NetworkConfig } from "../config/network.ts";
import { run } from "../host/exec.ts";
import type { Families, Subnets } from "../lease/lease.ts";
import type { Health } from "../observe/health.ts";
import type { Log } from "../observe/log.ts";
import { brNetfilterFindings } from "../traffic/bridge.ts";
import { TRAFFIC } from "../traffic/findings.ts";
import { openTrafficHost } from "../traffic/host.ts";
import type { TrafficIntent } from "../traffic/intent.ts";
import { TrafficManager } from "../traffic/manager.ts";
import type { Settings } from "./settings.ts";

/** The traffic rules this node wants for a config and its own lease. */
export function wantedTraffic(config: NetworkConfig, subnets: Subnets, settings: Settings): TrafficIntent {
  const family = (name: "ipv4" | "ipv6") => {
    const range = config[name];
    const subnet = subnets[name];
    if (!range || subnet === undefined) return {};
    return { [name]: { network: range.network, subnet, masqExclude: config.masqExclude[name] } };
  };
  return {
    kind: config.enableNFTables ? "nftables" : "iptables",
    ...family("ipv4"),
    ...family("ipv6"),
    masquerade: settings.ipMasq,
    forward: settings.iptablesForwardRules,
    fullyRandom: !settings.ipMasqFullyRandomDisable,
  };
}

/** The manager of the rules on this host. `former`: families of the last run. */
export function openTraffic(settings: Settings, former: Families, health: Health, log: Log): TrafficManager {
  return new TrafficManager({
    host: openTrafficHost(run),
    health,
    log,
    previous: former,
    resync: settings.iptablesResync,
  });
}

/** Warns where bridged packets do not pass iptables; nothing in nftables mode. */
export function reportBridge(config: NetworkConfig, health: Health): void {
  const findings = config.enableNFTables ? [] : brNetfilterFindings(config.families);
  if (findings.length === 0) health.clear(TRAFFIC.bridge);
  for (const finding of findings) health.raise(finding);
}
