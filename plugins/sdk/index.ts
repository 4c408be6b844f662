/**
 * The plugin contract, the only thing a backend may import from us (`import … from "flannel/sdk"`).
 * See docs/plugins.md.
 */
export * from "./backend.ts";
export type { HostFacts, ExternalInterface, ForeignRoute } from "./facts.ts";
export { isOnLink, nextHopTo } from "./facts.ts";
export { defineOptions } from "./options.ts";
export type {
  AddressObject,
  FdbObject,
  KernelObject,
  LinkState,
  NeighbourObject,
  RouteObject,
  SysctlObject,
  VxlanAttrs,
  WantedLink,
} from "../../core/netlink/objects.ts";
export type { Families, Lease, LeaseData, Peer, PeerFamily, Subnets } from "../../core/lease/lease.ts";
export type { Finding, Severity } from "../../core/observe/finding.ts";
