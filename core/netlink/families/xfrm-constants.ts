/** Numbers and sizes of the IPsec (xfrm) netlink family. Source: linux/xfrm.h, linux/netlink.h. */

export const NETLINK_XFRM = 6;

export const XFRM_MSG_DELSA = 0x11;
export const XFRM_MSG_GETSA = 0x12;
export const XFRM_MSG_NEWSA = 0x10;
export const XFRM_MSG_NEWPOLICY = 0x13;
export const XFRM_MSG_DELPOLICY = 0x14;
export const XFRM_MSG_GETPOLICY = 0x15;
/** Creates a policy, or replaces the one with the same selector and direction. */
export const XFRM_MSG_UPDPOLICY = 0x19;

export const XFRMA_TMPL = 5;
export const XFRMA_SRCADDR = 13;

export const XFRM_POLICY_IN = 0;
export const XFRM_POLICY_OUT = 1;
export const XFRM_POLICY_FWD = 2;
export const XFRM_POLICY_ALLOW = 0;

export const XFRM_MODE_TRANSPORT = 0;
export const XFRM_MODE_TUNNEL = 1;

/** IPPROTO_ESP (linux/in.h). */
export const IPPROTO_ESP = 50;

/** struct xfrm_address: 16 bytes, an IPv4 address in the first four. */
export const ADDRESS_BYTES = 16;
/** struct xfrm_selector. */
export const SELECTOR_BYTES = 56;
/** struct xfrm_lifetime_cfg: eight 64-bit limits, the first four of bytes and packets. */
export const LIFETIME_CONFIG_BYTES = 64;
export const LIFETIME_LIMITS = 4;
/** struct xfrm_lifetime_cur. */
export const LIFETIME_CURRENT_BYTES = 32;
/** struct xfrm_userpolicy_info. */
export const POLICY_BYTES = 168;
/** Of its member `dir`: behind selector, lifetimes, priority and index. */
export const POLICY_DIRECTION_AT = SELECTOR_BYTES + LIFETIME_CONFIG_BYTES + LIFETIME_CURRENT_BYTES + 8;
/** struct xfrm_user_tmpl. */
export const TEMPLATE_BYTES = 64;
/** struct xfrm_usersa_info. */
export const STATE_BYTES = 224;
/** Of its members: struct xfrm_id behind the selector, then the source, lifetimes, statistics, and what follows them. */
export const STATE_ID_AT = SELECTOR_BYTES;
export const STATE_SOURCE_AT = SELECTOR_BYTES + 24;
export const STATE_REQID_AT =
  STATE_SOURCE_AT + ADDRESS_BYTES + LIFETIME_CONFIG_BYTES + LIFETIME_CURRENT_BYTES + 16;
/** Any algorithm will do. */
export const ANY_ALGORITHM = 0xffffffff;
