/**
 * Kernel objects as plain data: what a backend asks for and what a dump returns. A leaf: imports nothing.
 * Addresses are canonical text without prefix length, prefixes are canonical CIDR text, MACs lower-case with
 * colons, devices are named (an index may change under a name).
 */

/** `ip address add ADDRESS dev DEV`: `address` is CIDR text, e.g. `10.5.72.0/32`. */
export interface AddressObject {
  readonly kind: "address";
  readonly dev: string;
  readonly address: string;
}

/**
 * `ip route replace DST [via VIA] dev DEV [onlink] [metric METRIC]` in the main table, or
 * `ip route replace blackhole DST [metric METRIC]`.
 */
export interface RouteObject {
  readonly kind: "route";
  /** Drops silently what no better route takes; has no gateway, and `dev` is empty. */
  readonly blackhole?: true;
  readonly dst: string;
  readonly dev: string;
  readonly via?: string;
  readonly onlink?: boolean;
  /** Priority; 0 or absent means the kernel's default of the family. */
  readonly metric?: number;
  /** Preferred source address. */
  readonly src?: string;
  /** RTPROT_* of a route made by somebody else, only to delete it; absent means ours (ROUTE_PROTOCOL). */
  readonly protocol?: number;
}

/** `ip neighbour replace IP lladdr MAC nud permanent dev DEV`. */
export interface NeighbourObject {
  readonly kind: "neighbour";
  readonly dev: string;
  readonly ip: string;
  readonly mac: string;
}

/** `bridge fdb replace MAC dst DST self permanent dev DEV`. */
export interface FdbObject {
  readonly kind: "fdb";
  readonly dev: string;
  readonly mac: string;
  readonly dst: string;
}

/** `sysctl -w`: `path` is relative to /proc/sys, e.g. `net/ipv6/conf/flannel-v6.1/accept_ra`. */
export interface SysctlObject {
  readonly kind: "sysctl";
  readonly path: string;
  readonly value: string;
}

/**
 * `ethtool -K DEV tx-checksum-ip-generic on|off`: off, the kernel computes the checksums of what pods send before it
 * is encapsulated, instead of leaving that to the hardware or to a later stage.
 */
export interface OffloadObject {
  readonly kind: "offload";
  readonly dev: string;
  readonly feature: "tx-checksum-ip-generic";
  readonly on: boolean;
}

/** What is set to a value, rather than written to or removed from a table of the kernel. */
export type SettingObject = SysctlObject | OffloadObject;

/** What a backend may want per lease (its own or a peer's); settings only with the own one. */
export type KernelObject = AddressObject | RouteObject | NeighbourObject | FdbObject | SettingObject;

/** `ip nexthop replace id ID via VIA dev DEV [onlink]`; made by core for IPv4 routes, never by a backend. */
export interface NexthopObject {
  readonly kind: "nexthop";
  readonly id: number;
  readonly dev: string;
  readonly via: string;
  readonly onlink?: boolean;
}

/** A route that points to a nexthop object; made by core, never by a backend. */
export interface NexthopRouteObject {
  readonly kind: "nexthop-route";
  readonly dst: string;
  readonly nexthop: number;
  readonly metric?: number;
}

/** vxlan device attributes (`ip link add … type vxlan …`). Absent means: let the kernel choose. */
export interface VxlanAttrs {
  readonly vni: number;
  /** Underlay device name; absent when none is set. */
  readonly underlay?: string;
  readonly local?: string;
  /** UDP destination port; absent lets the kernel choose 8472. */
  readonly port?: number;
  readonly learning?: boolean;
  readonly gbp?: boolean;
  readonly group?: string;
  readonly l2miss?: boolean;
}

/** ipip device attributes (`ip link add … type ipip …`). Absent means: none, any. */
export interface IpipAttrs {
  readonly local?: string;
  readonly remote?: string;
  /** 0 inherits the TTL of the inner packet. */
  readonly ttl?: number;
  /** Whether the outer packet carries DF (`pmtudisc`); false is `nopmtudisc`. */
  readonly pmtudisc?: boolean;
}

/** `ip link add NAME mtu MTU address MAC type vxlan …` */
export interface WantedVxlan {
  readonly name: string;
  readonly type: "vxlan";
  readonly mtu: number;
  /** Used only when the device has to be created: an existing one keeps its own. */
  readonly mac: string;
  readonly vxlan: VxlanAttrs;
}

/** `ip link add NAME mtu MTU type ipip …` */
export interface WantedIpip {
  readonly name: string;
  readonly type: "ipip";
  /** A lower MTU that an existing device has is the operator's, and stays. */
  readonly mtu: number;
  readonly ipip: IpipAttrs;
}

/** `ip link add NAME mtu MTU type wireguard`; keys and peers are set apart (generic netlink). */
export interface WantedWireguard {
  readonly name: string;
  readonly type: "wireguard";
  readonly mtu: number;
}

/** A device a backend needs before the lease is acquired. */
export type WantedLink = WantedVxlan | WantedIpip | WantedWireguard;

/** A device as the kernel has it. */
export interface LinkState {
  readonly name: string;
  readonly index: number;
  /** IFLA_INFO_KIND (`vxlan`, `bridge`, `veth`, …), absent for physical devices and loopback. */
  readonly type?: string;
  readonly mtu: number;
  readonly mac?: string;
  /** IFF_UP. */
  readonly up: boolean;
  /** IFF_RUNNING: carrier. */
  readonly running: boolean;
  readonly loopback: boolean;
  /** NET_ADDR_*: 0 permanent, 1 random, 2 stolen, 3 set (linux/netdevice.h). */
  readonly addressAssignType?: number;
  /** Index of the lower device (IFLA_LINK). */
  readonly lower?: number;
  /** Index of the master device (bridge, bond, VRF). */
  readonly master?: number;
  readonly vxlan?: VxlanAttrs;
  readonly ipip?: IpipAttrs;
}

/** An address as the kernel has it. */
export interface AddressState {
  readonly dev: string;
  readonly family: 4 | 6;
  /** CIDR text with the host part kept, e.g. `192.0.2.1/24`. */
  readonly address: string;
  /** 0 global, 200 site, 253 link, 254 host (rtnetlink.h). */
  readonly scope: number;
  readonly deprecated: boolean;
  readonly temporary: boolean;
  readonly tentative: boolean;
  /** IFA_F_PERMANENT: no lifetime (not from DHCP or RA). */
  readonly permanent: boolean;
}

/** A main-table unicast route as the kernel has it (blackhole and the like carry `type`). */
export interface RouteState {
  readonly family: 4 | 6;
  /** CIDR text; a default route is `0.0.0.0/0` or `::/0`. */
  readonly dst: string;
  /** Absent for multipath routes without a top-level device and for blackholes. */
  readonly dev?: string;
  readonly via?: string;
  readonly onlink: boolean;
  readonly metric: number;
  /** RTPROT_* of the route. */
  readonly protocol: number;
  /** RTN_*: 1 unicast, 6 blackhole, … */
  readonly type: number;
  readonly src?: string;
  readonly scope: number;
  /** Id of the nexthop object, absent for plain routes. */
  readonly nexthop?: number;
  /** Legs of a multipath route. */
  readonly hops?: readonly { readonly dev: string; readonly via?: string }[];
  /** RTNH_F_LINKDOWN or RTNH_F_DEAD: the kernel does not use it. */
  readonly dead: boolean;
}

/** A neighbour as the kernel has it; `mac` is absent while incomplete. */
export interface NeighbourState {
  readonly dev: string;
  readonly ip: string;
  readonly mac?: string;
  /** NUD_* bits; 0x80 is permanent. */
  readonly state: number;
}

/** A forwarding entry as the kernel has it; `dst` is absent for entries without a remote. */
export interface FdbState {
  readonly dev: string;
  readonly mac: string;
  readonly dst?: string;
  readonly state: number;
}

/** A nexthop object as the kernel has it. */
export interface NexthopState {
  readonly id: number;
  readonly dev?: string;
  readonly via?: string;
  readonly onlink: boolean;
  readonly protocol: number;
}

/**
 * Packets that other nodes send to this one, by their outer header: IP-in-IP (IP protocol 4) over IPv4, or UDP to a
 * port over either family.
 */
export type TunnelPacket = { readonly protocol: "ipip" } | { readonly udpPort: number };

/** A rule of policy routing without a selector: `from all lookup TABLE`, at its place among the rules. */
export interface RoutingRule {
  readonly priority: number;
  readonly table: number;
}
