/**
 * What a lease is: which subnets a node owns and how to reach it. A leaf: plain data, imports nothing.
 * Addresses and prefixes are canonical text (dotted IPv4; RFC 5952 IPv6), so that equality is string equality.
 */

/** The subnets of a lease as canonical CIDR text with the host bits zero; at least one family is present. */
export interface Subnets {
  readonly ipv4?: string;
  readonly ipv6?: string;
}

/** The value stored under a subnet key, without its encoding. */
export interface LeaseAttrs {
  /** `Backend.Type`; empty for udp, alloc and the cloud route backends, as upstream leaves it. */
  readonly backendType: string;
  readonly publicIP?: string;
  readonly publicIPv6?: string;
  /** Per-family backend data, any JSON value; absent when the backend publishes none. */
  readonly backendData?: unknown;
  readonly backendV6Data?: unknown;
  /** Ours (upstream ignores it): stable identity of the node, `<machine>-<interface>`. */
  readonly nodeId?: string;
  /** Ours: identity of the boot that wrote the value. */
  readonly bootId?: string;
}

/** A lease of any node. */
export interface Lease {
  /** Subnet key without prefix, e.g. `10.5.72.0-24` or `10.12.13.0-24&fd00:12:13::-56`. */
  readonly key: string;
  readonly subnets: Subnets;
  readonly attrs: LeaseAttrs;
  /** Store revision of the last write, where the store has one: of two leases that overlap the newer one counts. */
  readonly modRevision?: number;
}

/** Data a backend publishes with the lease. */
export interface LeaseData {
  readonly backendType: string;
  readonly ipv4?: unknown;
  readonly ipv6?: unknown;
}

/** One family of a peer that can be reached over it: it has a subnet and an address of that family. */
export interface PeerFamily {
  readonly subnet: string;
  readonly publicIP: string;
  /** The backend data of this family, undefined when the peer publishes none. */
  readonly data?: unknown;
}

/** Another node as a backend sees it. A family is absent when the peer lacks it or we have it off. */
export interface Peer {
  readonly key: string;
  readonly backendType: string;
  readonly nodeId?: string;
  /** As in {@link Lease}: of two leases that say the same of themselves the newer one counts, on every node. */
  readonly modRevision?: number;
  readonly ipv4?: PeerFamily;
  readonly ipv6?: PeerFamily;
}

/** Which families this node runs. */
export interface Families {
  readonly ipv4: boolean;
  readonly ipv6: boolean;
}

/** A lease as a backend sees it, restricted to the families we run. */
export function toPeer(lease: Lease, families: Families): Peer {
  const { subnets, attrs, modRevision } = lease;
  return {
    key: lease.key,
    backendType: attrs.backendType,
    ...(attrs.nodeId === undefined ? {} : { nodeId: attrs.nodeId }),
    ...(modRevision === undefined ? {} : { modRevision }),
    ...(families.ipv4 && subnets.ipv4 !== undefined && attrs.publicIP !== undefined
      ? { ipv4: family(subnets.ipv4, attrs.publicIP, attrs.backendData) }
      : {}),
    ...(families.ipv6 && subnets.ipv6 !== undefined && attrs.publicIPv6 !== undefined
      ? { ipv6: family(subnets.ipv6, attrs.publicIPv6, attrs.backendV6Data) }
      : {}),
  };
}

function family(subnet: string, publicIP: string, data: unknown): PeerFamily {
  return data === undefined || data === null ? { subnet, publicIP } : { subnet, publicIP, data };
}
