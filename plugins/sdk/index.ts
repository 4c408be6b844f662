/**
 * The plugin contract, the only thing a backend may import from us (`import … from "flannel/sdk"`).
 * See docs/plugins.md.
 */

export type { Families, Lease, LeaseData, Peer, PeerFamily, Subnets } from "../../core/lease/lease.ts";
export type {
  AddressObject,
  FdbObject,
  IpipAttrs,
  KernelObject,
  LinkState,
  NeighbourObject,
  OffloadObject,
  RouteObject,
  SysctlObject,
  VxlanAttrs,
  WantedIpip,
  WantedLink,
  WantedVxlan,
  WantedWireguard,
} from "../../core/netlink/objects.ts";
export type { Finding, Severity } from "../../core/observe/finding.ts";
export * from "./backend.ts";
export type { ExternalInterface, ForeignRoute, HostFacts } from "./facts.ts";
export { isOnLink, nextHopTo } from "./facts.ts";
export type { StandardIssue, StandardResult, StandardSchema } from "./standard-schema.ts";
