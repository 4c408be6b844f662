import type { NetworkConfig } from "../config/network.ts";
import { run } from "../host/exec.ts";
import type { Families, Peer, Subnets } from "../lease/lease.ts";
import type { Health } from "../observe/health.ts";
import type { Log } from "../observe/log.ts";
import { brNetfilterFindings } from "../traffic/bridge.ts";
import { TRAFFIC } from "../traffic/findings.ts";
import { openTrafficHost } from "../traffic/host.ts";
import type { TrafficIntent } from "../traffic/intent.ts";
import { TrafficManager } from "../traffic/manager.ts";
import { MemberKeeper, type Members } from "../traffic/members/keeper.ts";
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

/** The keeper of the filter that lets only members send to the tunnel. */
export function openMemberKeeper(settings: Settings, health: Health, log: Log): MemberKeeper {
  return new MemberKeeper({ host: openTrafficHost(run), health, log, resync: settings.iptablesResync });
}

/** The public addresses of all peers, whatever backend they use. */
export function membersOf(peers: Iterable<Peer>, families: Families): Members {
  const addresses = { ipv4: new Set<string>(), ipv6: new Set<string>() };
  for (const { ipv4, ipv6 } of peers) {
    if (ipv4) addresses.ipv4.add(ipv4.publicIP);
    if (ipv6) addresses.ipv6.add(ipv6.publicIP);
  }
  return {
    ...(families.ipv4 ? { 4: addresses.ipv4 } : {}),
    ...(families.ipv6 ? { 6: addresses.ipv6 } : {}),
  };
}

/** Warns where bridged packets do not pass iptables; nothing in nftables mode. */
export function reportBridge(config: NetworkConfig, health: Health): void {
  const findings = config.enableNFTables ? [] : brNetfilterFindings(config.families);
  if (findings.length === 0) health.clear(TRAFFIC.bridge);
  for (const finding of findings) health.raise(finding);
}
