/**
 * WireGuard devices as plain data. A leaf: imports nothing. Keys are base64 text of 32 bytes (as `wg` prints them),
 * addresses and prefixes are canonical text.
 */

/** Where the packets of a peer go: `ADDRESS:PORT` or `[ADDRESS]:PORT`. */
export interface WireguardEndpoint {
  readonly address: string;
  readonly port: number;
}

/** A peer as the device has it (`wg show DEV dump`). */
export interface WireguardPeerState {
  readonly publicKey: string;
  /** A secret; absent when there is none. */
  readonly presharedKey?: string;
  /** The one last heard from, which need not be the one that was set. Absent before either. */
  readonly endpoint?: WireguardEndpoint;
  /** Seconds; 0 is off. */
  readonly keepalive: number;
  readonly allowedIPs: readonly string[];
  /** Seconds since 1970; absent when there never was one. */
  readonly lastHandshake?: number;
  readonly rxBytes: number;
  readonly txBytes: number;
}

/** A device as the kernel, or a process in its place, has it. The private key is not told. */
export interface WireguardState {
  /** Absent when no private key is set. */
  readonly publicKey?: string;
  /** UDP port; 0 while the device is down and none was set. */
  readonly listenPort: number;
  readonly peers: readonly WireguardPeerState[];
}

/** What to do to one peer; what is absent stays as it is (`wg set DEV peer KEY …`). */
export interface WireguardPeerChange {
  readonly publicKey: string;
  /** Remove it: everything else is left aside. Already gone is success. */
  readonly remove?: true;
  /** A secret; null takes the one it has away. */
  readonly presharedKey?: string | null;
  readonly endpoint?: WireguardEndpoint;
  /** Seconds; 0 turns it off. */
  readonly keepalive?: number;
  /** All there are from now on. A prefix another peer has moves here. */
  readonly allowedIPs?: readonly string[];
}

/** What to do to a device, in this order; what is absent stays as it is. */
export interface WireguardChange {
  /** A secret. A peer with the same key goes. */
  readonly privateKey?: string;
  readonly listenPort?: number;
  readonly peers?: readonly WireguardPeerChange[];
}
