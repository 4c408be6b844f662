import type { Finding } from "../../observe/finding.ts";
import type { TrafficKind } from "../intent.ts";
import type { DroppingChain } from "./chain.ts";
import type { Denial } from "./list.ts";

/** Stable code of what {@link forwardDeniedFinding} tells. */
export const FORWARD_DENIED = "FIREWALL_FORWARD";

/** Whether a chain is the one that iptables, in either variant, has for forwarded packets. */
export function isOfIptables({ place }: DroppingChain): boolean {
  if (place.kind === "legacy") return place.chain === "FORWARD";
  return place.family !== "inet" && place.table === "filter" && place.chain === "FORWARD";
}

/**
 * A chain drops the packets of containers that are forwarded: what one table accepts, ours too, another one still drops.
 * The fix names the very commands.
 */
export function forwardDeniedFinding({ chain, networks }: Denial, kind: TrafficKind): Finding {
  const config =
    kind === "nftables" && isOfIptables(chain)
      ? '; or set "EnableNFTables" to false in the network config: flanneld then keeps such rules in that chain itself'
      : "";
  return {
    code: FORWARD_DENIED,
    severity: "warning",
    title: "forwarded packets are dropped by policy",
    text: `${chain.name} drops what no rule in it accepts, and none accepts all packets from and to ${networks.join(" and ")}`,
    fix: `Accept them there (rules in other tables do not help): ${networks.flatMap((network) => commandsFor(chain, network)).join("; ")}${config}.`,
  };
}

/** Commands that accept a network in a chain, both ways. */
function commandsFor(dropping: DroppingChain, network: string): readonly string[] {
  const { place } = dropping;
  if (place.kind === "legacy") {
    return ["-s", "-d"].map((end) => `\`${place.command} -I ${place.chain} ${end} ${network} -j ACCEPT\``);
  }
  const { family, table, chain } = place;
  if (isOfIptables(dropping)) {
    const command = family === "ip" ? "iptables" : "ip6tables";
    return ["-s", "-d"].map((end) => `\`${command} -I ${chain} ${end} ${network} -j ACCEPT\``);
  }
  const protocol = network.includes(":") ? "ip6" : "ip";
  return ["saddr", "daddr"].map(
    (end) => `\`nft insert rule ${family} ${table} ${chain} ${protocol} ${end} ${network} accept\``,
  );
}
