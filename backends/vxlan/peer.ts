import {
  type HostFacts,
  isOnLink,
  type KernelObject,
  type Peer,
  type PeerFamily,
  type PeerPlan,
} from "flannel/sdk";
import { deviceName, type Family } from "./devices.ts";
import { readMac } from "./mac.ts";
import type { Options } from "./options.ts";

/** Value of `BackendType` in the leases of this backend. */
export const TYPE = "vxlan";

/** Objects that reach a peer; the families do not depend on each other, so one bad half leaves the other working. */
export function planPeer(peer: Peer, options: Options, facts: HostFacts): PeerPlan {
  if (peer.backendType !== TYPE) {
    return { objects: [], problems: [`uses backend "${peer.backendType}", this node uses "${TYPE}"`] };
  }
  const objects: KernelObject[] = [];
  const problems: string[] = [];
  for (const family of ["ipv4", "ipv6"] as const) {
    const half = peer[family];
    if (half === undefined) continue;
    const dev = options.DirectRouting ? isOnLink(facts, half.publicIP) : undefined;
    if (dev !== undefined) {
      objects.push({ kind: "route", dst: half.subnet, via: half.publicIP, dev });
      continue;
    }
    const mac = readMac((half.data as { VtepMAC?: unknown } | undefined)?.VtepMAC);
    if (mac === undefined) problems.push(`has no usable VtepMAC for ${family}: ${quote(half.data)}`);
    else objects.push(...tunnelTo(half, mac, deviceName(family, options.VNI)));
  }
  return problems.length > 0 ? { objects, problems } : { objects };
}

/**
 * `ip neigh replace BASE lladdr MAC nud permanent dev DEV`, `bridge fdb replace MAC dev DEV dst PUBLIC self`,
 * `ip route replace SUBNET via BASE dev DEV onlink`: the peer's VTEP has the base address of its subnet.
 */
function tunnelTo(half: PeerFamily, mac: string, dev: string): KernelObject[] {
  const vtep = baseAddress(half.subnet);
  return [
    { kind: "neighbour", dev, ip: vtep, mac },
    { kind: "fdb", dev, mac, dst: half.publicIP },
    { kind: "route", dst: half.subnet, via: vtep, dev, onlink: true },
  ];
}

/** Backend data as the lease has it, cut to what fits a log line. */
function quote(data: unknown): string {
  const text = JSON.stringify(data ?? null);
  return text.length > LONGEST_QUOTE ? `${text.slice(0, LONGEST_QUOTE)}…` : text;
}

const LONGEST_QUOTE = 100;

/** The address part of CIDR text. */
export function baseAddress(subnet: string): string {
  return subnet.slice(0, subnet.indexOf("/"));
}

/** Address length of a VTEP: a host address, so that no broadcast or connected route comes with it. */
export const VTEP_LENGTH: Readonly<Record<Family, number>> = { ipv4: 32, ipv6: 128 };
