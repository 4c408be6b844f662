/**
 * Numbers of the netlink wire. Plain constants rather than enums: the encoder's hot path folds them in.
 * Sources: linux/netlink.h, linux/rtnetlink.h, linux/if_link.h, linux/if_addr.h, linux/neighbour.h, linux/nexthop.h,
 * linux/netfilter/nfnetlink.h, linux/netfilter/nf_tables.h.
 */

// Socket level.
export const AF_NETLINK = 16;
export const NETLINK_ROUTE = 0;
export const NETLINK_NETFILTER = 12;
export const SOL_NETLINK = 270;
export const NETLINK_ADD_MEMBERSHIP = 1;
export const NETLINK_CAP_ACK = 10;
export const NETLINK_EXT_ACK = 11;
export const NETLINK_GET_STRICT_CHK = 12;

// Address families that appear in rtnetlink headers.
export const AF_UNSPEC = 0;
export const AF_INET = 2;
export const AF_BRIDGE = 7;
export const AF_INET6 = 10;

// struct nlmsghdr.
export const HEADER_BYTES = 16;
export const NLM_F_REQUEST = 0x1;
export const NLM_F_ACK = 0x4;
export const NLM_F_DUMP_INTR = 0x10;
export const NLM_F_DUMP = 0x300;
export const NLM_F_REPLACE = 0x100;
export const NLM_F_EXCL = 0x200;
export const NLM_F_CREATE = 0x400;
/** In NLMSG_ERROR: the refused message is not quoted beyond its header. */
export const NLM_F_CAPPED = 0x100;
/** In NLMSG_ERROR and NLMSG_DONE: attributes (the extended ack) follow. */
export const NLM_F_ACK_TLVS = 0x200;
export const NLMSG_NOOP = 1;
export const NLMSG_ERROR = 2;
export const NLMSG_DONE = 3;
export const NLMSG_OVERRUN = 4;
export const NLMSGERR_ATTR_MSG = 1;

// struct nlattr.
export const ATTRIBUTE_BYTES = 4;
/** Without NLA_F_NESTED and NLA_F_NET_BYTEORDER. */
export const NLA_TYPE_MASK = 0x3fff;
export const NLA_F_NESTED = 0x8000;

// Message types.
export const RTM_NEWLINK = 16;
export const RTM_DELLINK = 17;
export const RTM_GETLINK = 18;
export const RTM_NEWADDR = 20;
export const RTM_DELADDR = 21;
export const RTM_GETADDR = 22;
export const RTM_NEWROUTE = 24;
export const RTM_DELROUTE = 25;
export const RTM_GETROUTE = 26;
export const RTM_NEWNEIGH = 28;
export const RTM_DELNEIGH = 29;
export const RTM_GETNEIGH = 30;
export const RTM_DELRULE = 33;
export const RTM_NEWNEXTHOP = 104;
export const RTM_DELNEXTHOP = 105;
export const RTM_GETNEXTHOP = 106;

// Attributes of struct fib_rule_hdr (linux/fib_rules.h).
export const FRA_PRIORITY = 6;
export const FRA_TABLE = 15;

// Multicast groups.
export const RTNLGRP_LINK = 1;
export const RTNLGRP_NEIGH = 3;
export const RTNLGRP_IPV4_IFADDR = 5;
export const RTNLGRP_IPV4_ROUTE = 7;
export const RTNLGRP_IPV6_IFADDR = 9;
export const RTNLGRP_IPV6_ROUTE = 11;
export const RTNLGRP_NEXTHOP = 32;

// struct ifinfomsg and its attributes.
export const IFINFO_BYTES = 16;
export const IFF_UP = 0x1;
export const IFF_LOOPBACK = 0x8;
export const IFF_RUNNING = 0x40;
export const IFLA_ADDRESS = 1;
export const IFLA_IFNAME = 3;
export const IFLA_MTU = 4;
export const IFLA_LINK = 5;
export const IFLA_MASTER = 10;
export const IFLA_TXQLEN = 13;
export const IFLA_LINKINFO = 18;
export const IFLA_EXT_MASK = 29;
export const IFLA_LINK_NETNSID = 37;
export const IFLA_INFO_KIND = 1;
export const IFLA_INFO_DATA = 2;
/** Leaves the counters out of a link dump: a third of the bytes. */
export const RTEXT_FILTER_SKIP_STATS = 8;
/** IFNAMSIZ without the final zero. */
export const LONGEST_NAME = 15;

export const IFLA_VXLAN_ID = 1;
export const IFLA_VXLAN_GROUP = 2;
export const IFLA_VXLAN_LINK = 3;
export const IFLA_VXLAN_LOCAL = 4;
export const IFLA_VXLAN_TTL = 5;
export const IFLA_VXLAN_TOS = 6;
export const IFLA_VXLAN_LEARNING = 7;
export const IFLA_VXLAN_PROXY = 11;
export const IFLA_VXLAN_RSC = 12;
export const IFLA_VXLAN_L2MISS = 13;
export const IFLA_VXLAN_L3MISS = 14;
export const IFLA_VXLAN_PORT = 15;
export const IFLA_VXLAN_GROUP6 = 16;
export const IFLA_VXLAN_LOCAL6 = 17;
export const IFLA_VXLAN_UDP_ZERO_CSUM6_TX = 19;
export const IFLA_VXLAN_UDP_ZERO_CSUM6_RX = 20;
export const IFLA_VXLAN_GBP = 23;

// IFLA_INFO_DATA of ipip (linux/if_tunnel.h).
export const IFLA_IPTUN_LOCAL = 2;
export const IFLA_IPTUN_REMOTE = 3;
export const IFLA_IPTUN_TTL = 4;
export const IFLA_IPTUN_TOS = 5;
export const IFLA_IPTUN_PMTUDISC = 10;

// struct ifaddrmsg and its attributes.
export const IFADDR_BYTES = 8;
export const IFA_ADDRESS = 1;
export const IFA_LOCAL = 2;
export const IFA_FLAGS = 8;
/** For IPv6; the same bit means "secondary" for IPv4. */
export const IFA_F_TEMPORARY = 0x01;
export const IFA_F_DEPRECATED = 0x20;
export const IFA_F_TENTATIVE = 0x40;
export const IFA_F_PERMANENT = 0x80;

// struct rtmsg and its attributes.
export const ROUTE_BYTES = 12;
export const RT_TABLE_MAIN = 254;
export const RT_SCOPE_UNIVERSE = 0;
export const RT_SCOPE_LINK = 253;
/** In a delete: any scope. */
export const RT_SCOPE_NOWHERE = 255;
export const RTN_UNSPEC = 0;
export const RTN_UNICAST = 1;
export const RTN_BLACKHOLE = 6;
export const RTNH_F_DEAD = 0x1;
export const RTNH_F_ONLINK = 0x4;
export const RTNH_F_LINKDOWN = 0x10;
/** A cached exception, not an entry of the table. */
export const RTM_F_CLONED = 0x200;
export const RTA_DST = 1;
export const RTA_OIF = 4;
export const RTA_GATEWAY = 5;
export const RTA_PRIORITY = 6;
export const RTA_PREFSRC = 7;
export const RTA_MULTIPATH = 9;
export const RTA_TABLE = 15;
/** Gateway of another family than the route's (RFC 5549): u16 family, then the address. */
export const RTA_VIA = 18;
export const RTA_NH_ID = 30;
/** struct rtnexthop. */
export const RTNEXTHOP_BYTES = 8;
/** IP6_RT_PRIO_USER: the metric the kernel gives an IPv6 route that was added without one (net/ipv6_route.h). */
export const IPV6_DEFAULT_METRIC = 1024;

// struct ndmsg and its attributes.
export const NEIGHBOUR_BYTES = 12;
export const NUD_NOARP = 0x40;
export const NUD_PERMANENT = 0x80;
export const NTF_SELF = 0x2;
export const NDA_DST = 1;
export const NDA_LLADDR = 2;
export const NDA_IFINDEX = 8;

// struct nhmsg and its attributes.
export const NEXTHOP_BYTES = 8;
export const NHA_ID = 1;
export const NHA_OIF = 5;
export const NHA_GATEWAY = 6;

// struct nfgenmsg and the nf_tables messages about the generation; attributes are big-endian.
export const NETFILTER_BYTES = 4;
export const NFNL_SUBSYS_NFTABLES = 10;
export const NFT_MSG_NEWGEN = (NFNL_SUBSYS_NFTABLES << 8) | 15;
export const NFT_MSG_GETGEN = (NFNL_SUBSYS_NFTABLES << 8) | 16;
export const NFTA_GEN_ID = 1;
