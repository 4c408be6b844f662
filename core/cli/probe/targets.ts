import { describeOwner } from "../../lease/identity.ts";
import type { Lease, Subnets } from "../../lease/lease.ts";
import {
  canonicalAddress,
  canonicalPrefix,
  containsAddress,
  firstHost,
  parsePrefix,
} from "../../net/prefix.ts";

/** One family of one peer that packets are sent to. */
export interface ProbeTarget {
  readonly key: string;
  /** The node for people: address and node id. */
  readonly node: string;
  readonly family: 4 | 6;
  readonly subnet: string;
  /** Addresses to try, the first that answers is measured. */
  readonly addresses: readonly ProbeAddress[];
}

/** An address of a peer, and what it is: the VTEP of a tunnel, the gateway of its containers, the host itself. */
export interface ProbeAddress {
  readonly address: string;
  readonly role: "vtep" | "gateway" | "host";
}

/** Backends whose device on the other side carries the base address of its subnet. */
const TUNNELS = new Set(["vxlan"]);

/** What to probe of each peer, for the families that this node has itself. Pure. */
export function planTargets(peers: readonly Lease[], own: Subnets): readonly ProbeTarget[] {
  return peers.flatMap((lease) =>
    (["ipv4", "ipv6"] as const).flatMap((family): ProbeTarget[] => {
      const subnet = lease.subnets[family];
      const prefix = subnet === undefined ? undefined : parsePrefix(subnet);
      if (own[family] === undefined || subnet === undefined || !prefix) return [];
      const host = family === "ipv4" ? lease.attrs.publicIP : lease.attrs.publicIPv6;
      const vtep = { address: subnet.slice(0, subnet.indexOf("/")), role: "vtep" } as const;
      const addresses: readonly ProbeAddress[] = TUNNELS.has(lease.attrs.backendType)
        ? [vtep]
        : [
            { address: firstHost(prefix), role: "gateway" },
            ...(host === undefined ? [] : [{ address: host, role: "host" } as const]),
          ];
      return [{ key: lease.key, node: describeOwner(lease.attrs), family: prefix.family, subnet, addresses }];
    }),
  );
}

/** Whether an operator means this peer: by key, subnet, an address in it, address of the node, or node id. */
export function isMeant({ key, subnets, attrs }: Lease, text: string): boolean {
  if (text === key || text === attrs.nodeId) return true;
  const own = [subnets.ipv4, subnets.ipv6].filter((subnet) => subnet !== undefined);
  const prefix = canonicalPrefix(text);
  if (prefix !== undefined) return own.includes(prefix);
  const address = canonicalAddress(text);
  if (address === undefined) return false;
  if (address === attrs.publicIP || address === attrs.publicIPv6) return true;
  return own.some((subnet) => {
    const within = parsePrefix(subnet);
    return within !== undefined && containsAddress(within, address);
  });
}
