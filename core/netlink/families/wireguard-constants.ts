/** Numbers of WireGuard's generic netlink family. Source: linux/wireguard.h. */

/** WG_GENL_NAME, WG_GENL_VERSION. */
export const WG_GENL_NAME = "wireguard";
export const WG_GENL_VERSION = 1;

export const WG_CMD_GET_DEVICE = 0;
export const WG_CMD_SET_DEVICE = 1;

export const WGDEVICE_A_IFINDEX = 1;
export const WGDEVICE_A_IFNAME = 2;
export const WGDEVICE_A_PRIVATE_KEY = 3;
export const WGDEVICE_A_PUBLIC_KEY = 4;
export const WGDEVICE_A_LISTEN_PORT = 6;
export const WGDEVICE_A_PEERS = 8;

export const WGPEER_F_REMOVE_ME = 1;
export const WGPEER_F_REPLACE_ALLOWEDIPS = 2;
export const WGPEER_A_PUBLIC_KEY = 1;
export const WGPEER_A_PRESHARED_KEY = 2;
export const WGPEER_A_FLAGS = 3;
/** struct sockaddr_in or sockaddr_in6. */
export const WGPEER_A_ENDPOINT = 4;
export const WGPEER_A_PERSISTENT_KEEPALIVE_INTERVAL = 5;
/** struct __kernel_timespec: two 64-bit numbers, seconds first. */
export const WGPEER_A_LAST_HANDSHAKE_TIME = 6;
export const WGPEER_A_RX_BYTES = 7;
export const WGPEER_A_TX_BYTES = 8;
export const WGPEER_A_ALLOWEDIPS = 9;

export const WGALLOWEDIP_A_FAMILY = 1;
export const WGALLOWEDIP_A_IPADDR = 2;
export const WGALLOWEDIP_A_CIDR_MASK = 3;
