import type { HostFacts, Peer, Subnets } from "flannel/sdk";

/** Variables for a command, by name. */
export type Environment = Readonly<Record<string, string>>;

/** What stands for a family that is off or that a peer lacks, as upstream prints it. */
const ABSENT = { network: "0.0.0.0/0", ip: "0.0.0.0", network6: "::/0", ip6: "<nil>" } as const;

/** Variables about this node, for PostStartupCommand and ShutdownCommand; networks and subnets as CIDR text. */
export function ownEnvironment(networks: Subnets, subnets: Subnets, { external }: HostFacts): Environment {
  return {
    NETWORK: networks.ipv4 ?? ABSENT.network,
    IPV6NETWORK: networks.ipv6 ?? ABSENT.network6,
    SUBNET: subnets.ipv4 ?? ABSENT.network,
    IPV6SUBNET: subnets.ipv6 ?? ABSENT.network6,
    PUBLIC_IP: (subnets.ipv4 && external.publicIP) || ABSENT.ip,
    PUBLIC_IPV6: (subnets.ipv6 && external.publicIPv6) || ABSENT.ip6,
    INTERFACE: external.name,
  };
}

/** Variables about a peer, for SubnetAddCommand and SubnetRemoveCommand. */
export function peerEnvironment({ ipv4, ipv6 }: Peer, { external }: HostFacts): Environment {
  return {
    SUBNET: ipv4?.subnet ?? ABSENT.network,
    IPV6SUBNET: ipv6?.subnet ?? ABSENT.network6,
    PUBLIC_IP: ipv4?.publicIP ?? ABSENT.ip,
    PUBLIC_IPV6: ipv6?.publicIP ?? ABSENT.ip6,
    INTERFACE: external.name,
  };
}

/**
 * What a peer's PreStartupCommand printed, from its lease: empty where it has none, undefined where the lease holds
 * something else than text.
 */
export function peerData({ ipv4, ipv6 }: Peer): string | undefined {
  const data = ipv4?.data ?? ipv6?.data ?? "";
  return typeof data === "string" ? data : undefined;
}
