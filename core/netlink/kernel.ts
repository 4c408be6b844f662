import type {
  AddressObject,
  AddressState,
  FdbObject,
  FdbState,
  LinkState,
  NeighbourObject,
  NeighbourState,
  NexthopObject,
  NexthopRouteObject,
  NexthopState,
  RouteObject,
  RouteState,
  RoutingRule,
  WantedLink,
} from "./objects.ts";
import type { WireguardChange, WireguardState } from "./wireguard-objects.ts";
import type { XfrmChange, XfrmFailure, XfrmPolicyState, XfrmState } from "./xfrm-objects.ts";

/**
 * Route protocol number that marks everything we create (`ip route show proto 140`). Free in iproute2's
 * rt_protos and in linux/rtnetlink.h; values above 4 (RTPROT_STATIC) are left alone by the kernel.
 */
export const ROUTE_PROTOCOL = 140;

/** Objects that can be written in a batch. */
export type BatchObject =
  | AddressObject
  | RouteObject
  | NeighbourObject
  | FdbObject
  | NexthopObject
  | NexthopRouteObject;

/**
 * One change. `put` creates or replaces by the object's identity (an address is only added: existing is success);
 * `delete` removes it (already gone is success).
 */
export interface KernelChange {
  readonly action: "put" | "delete";
  readonly object: BatchObject;
}

/** A change the kernel refused: position in the batch, errno, and the kernel's own words when it gave any. */
export interface ChangeFailure {
  readonly index: number;
  readonly change: KernelChange;
  /** Positive errno. */
  readonly errno: number;
  /** e.g. `ENODEV: no such device` or the extended-ack text. */
  readonly text: string;
}

/** What a notice is about; the object is as the kernel has it after (`put`) or before (`delete`) the change. */
export type Notice =
  | { readonly kind: "link"; readonly action: "put" | "delete"; readonly link: LinkState }
  | { readonly kind: "address"; readonly action: "put" | "delete"; readonly address: AddressState }
  | { readonly kind: "route"; readonly action: "put" | "delete"; readonly route: RouteState }
  | { readonly kind: "neighbour"; readonly action: "put" | "delete"; readonly neighbour: NeighbourState }
  | { readonly kind: "fdb"; readonly action: "put" | "delete"; readonly fdb: FdbState }
  | { readonly kind: "nexthop"; readonly action: "put" | "delete"; readonly nexthop: NexthopState };

/** Which routes are meant; all of them when nothing is said. */
export interface RouteFilter {
  readonly dev?: string;
  /** RTPROT_* they carry. */
  readonly protocol?: number;
  /** RTPROT_* they do not carry: what is known already need not be read again. */
  readonly otherThan?: number;
}

/**
 * The kernel's network state behind one interface. Two implementations: rtnetlink over FFI, and `ip -batch` /
 * `bridge -batch` where FFI is not available. Dumps cover the main table only. All methods throw a Fault
 * (`NETLINK_…`) when the kernel refuses the whole request.
 */
export interface Kernel {
  /** Whether nexthop objects exist (Linux ≥ 5.3). */
  readonly nexthopObjects: boolean;

  /** `ip -d link show` */
  links(): Promise<LinkState[]>;
  /** `ip -d link show dev NAME`, undefined when there is none. */
  link(name: string): Promise<LinkState | undefined>;
  /** `ip address show [dev DEV]` */
  addresses(dev?: string): Promise<AddressState[]>;
  /** `ip -4|-6 route show table main [dev DEV] [proto PROTOCOL]` */
  routes(family: 4 | 6, filter?: RouteFilter): Promise<RouteState[]>;
  /** `ip -4|-6 route get ADDRESS`, undefined when unreachable. */
  routeGet(address: string): Promise<{ dev: string; via?: string; src?: string } | undefined>;
  /** `ip -4|-6 neighbour show dev DEV` */
  neighbours(family: 4 | 6, dev: string): Promise<NeighbourState[]>;
  /** `bridge fdb show dev DEV` (entries with a remote only have `dst`). */
  fdb(dev: string): Promise<FdbState[]>;
  /** `ip nexthop show [proto PROTOCOL]`; empty where the kernel has no nexthop objects. */
  nexthops(): Promise<NexthopState[]>;

  /** `ip link add …`; throws Fault `LINK_EXISTS` on EEXIST. The link is left down. */
  createLink(link: WantedLink): Promise<void>;
  /** `ip link set NAME [mtu MTU] [address MAC] [up|down]` */
  setLink(name: string, change: { mtu?: number; mac?: string; up?: boolean }): Promise<void>;
  /** `ip link delete NAME`; already gone is success. */
  deleteLink(name: string): Promise<void>;

  /** `ip -4|-6 rule delete priority PRIORITY table TABLE`; false when there is none. */
  deleteRule(family: 4 | 6, rule: RoutingRule): Promise<boolean>;

  /** `ethtool -k DEV`: whether transmit checksum offload is on, undefined when the device cannot tell. */
  txChecksum(dev: string): Promise<boolean | undefined>;
  /** `ethtool -K DEV tx-checksum-ip-generic on|off` */
  setTxChecksum(dev: string, on: boolean): Promise<void>;

  /** `wg show DEV dump`, undefined when there is no WireGuard device of that name. */
  wireguard(dev: string): Promise<WireguardState | undefined>;
  /**
   * `wg set DEV …`. The kernel stops at the first thing it refuses (a port in use, say), what came before it is done.
   * Throws Fault `LINK_MISSING`, `LINK_KIND_UNSUPPORTED` or `NETLINK_…`; none of them shows a key.
   */
  setWireguard(dev: string, change: WireguardChange): Promise<void>;

  /** `ip xfrm policy list`, without those of sockets. Throws Fault `XFRM_UNAVAILABLE` where the kernel has no IPsec. */
  xfrmPolicies(): Promise<XfrmPolicyState[]>;
  /** `ip xfrm state list nokeys` */
  xfrmStates(): Promise<XfrmState[]>;
  /** `ip xfrm policy update|delete`, `ip xfrm state delete`, in order. Returns what failed; the rest was done. */
  applyXfrm(changes: readonly XfrmChange[]): Promise<XfrmFailure[]>;

  /**
   * Applies changes in the given order, in 32 KiB batches, yielding to the event loop at least every 1,000
   * changes. Returns what failed; the rest was done.
   */
  apply(changes: readonly KernelChange[]): Promise<ChangeFailure[]>;

  /**
   * Changes made by anyone, in batches, until aborted. Throws Fault `NETLINK_OVERRUN` when notices were lost: the
   * caller dumps and subscribes anew.
   */
  notices(signal: AbortSignal): AsyncIterable<readonly Notice[]>;

  /** Closes the sockets; idempotent. */
  close(): void;
}
