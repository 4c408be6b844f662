/**
 * The plugin contract, the only thing a backend may import from us (`import … from "flannel/sdk"`).
 * See docs/plugins.md.
 */

export type { Child, ChildSpec, Lasting } from "../../core/host/child-spec.ts";
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
  TunnelPacket,
  VxlanAttrs,
  WantedIpip,
  WantedLink,
  WantedVxlan,
  WantedWireguard,
} from "../../core/netlink/objects.ts";
export type {
  WireguardChange,
  WireguardEndpoint,
  WireguardPeerChange,
  WireguardPeerState,
  WireguardState,
} from "../../core/netlink/wireguard-objects.ts";
export type {
  XfrmChange,
  XfrmDirection,
  XfrmFailure,
  XfrmPolicy,
  XfrmPolicyState,
  XfrmState,
  XfrmTunnel,
} from "../../core/netlink/xfrm-objects.ts";
/** What a backend throws to tell the operator: a code, what is wrong, and what to do. Any other error is shown too. */
export { Fault } from "../../core/observe/fault.ts";
export type { Finding, Severity } from "../../core/observe/finding.ts";
export * from "./backend.ts";
export * from "./cloud.ts";
export type { ExternalInterface, ForeignRoute, HostFacts } from "./facts.ts";
export { isOnLink, nextHopTo } from "./facts.ts";
export { askMetadata, type MetadataAnswer, type MetadataRequest, readMetadata } from "./metadata.ts";
export type { StandardIssue, StandardResult, StandardSchema } from "./standard-schema.ts";
