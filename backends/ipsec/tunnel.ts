import type { Peer } from "flannel/sdk";

/** Value of `BackendType` in the leases of this backend. */
export const TYPE = "ipsec";

/** Ties policies to states; the number upstream uses. What carries it, and lies in our networks, is ours. */
export const REQID = 11;

/** This end of all tunnels. */
export interface OwnEnd {
  /** Address of the interface: what the kernel sends from. */
  readonly address: string;
  /** Address that peers know us by; the same but for a NAT. */
  readonly identity: string;
  /** CIDR text. */
  readonly subnet: string;
}

/** The far end of a tunnel. */
export interface FarEnd {
  /** Key of the peer. */
  readonly key: string;
  readonly address: string;
  /** CIDR text. */
  readonly subnet: string;
}

/** The peers that a tunnel can lead to, and why not to the others. */
export function findFarEnds(peers: readonly Peer[]): {
  readonly ends: readonly FarEnd[];
  readonly unusable: readonly { readonly key: string; readonly reason: string }[];
} {
  const ends: FarEnd[] = [];
  const unusable: { key: string; reason: string }[] = [];
  for (const { key, backendType, ipv4 } of peers) {
    if (backendType !== TYPE) {
      unusable.push({ key, reason: `uses backend "${backendType}", this node uses "${TYPE}"` });
    } else if (!ipv4) unusable.push({ key, reason: "has no IPv4 subnet" });
    else ends.push({ key, address: ipv4.publicIP, subnet: ipv4.subnet });
  }
  return { ends, unusable };
}
