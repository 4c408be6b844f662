import { malformedFault } from "../faults.ts";
import { GENERIC_BYTES } from "../generic.ts";
import type { AttributeCursor, MessageCursor } from "../wire/reader.ts";
import type { WireguardEndpoint, WireguardPeerState, WireguardState } from "../wireguard-objects.ts";
import {
  WGALLOWEDIP_A_CIDR_MASK,
  WGALLOWEDIP_A_IPADDR,
  WGDEVICE_A_LISTEN_PORT,
  WGDEVICE_A_PEERS,
  WGDEVICE_A_PUBLIC_KEY,
  WGPEER_A_ALLOWEDIPS,
  WGPEER_A_ENDPOINT,
  WGPEER_A_LAST_HANDSHAKE_TIME,
  WGPEER_A_PERSISTENT_KEEPALIVE_INTERVAL,
  WGPEER_A_PRESHARED_KEY,
  WGPEER_A_PUBLIC_KEY,
  WGPEER_A_RX_BYTES,
  WGPEER_A_TX_BYTES,
} from "./wireguard-constants.ts";
import { encodeKey, KEY_BYTES } from "./wireguard-key.ts";
import { decodeSocketAddress } from "./wireguard-socket-address.ts";

/** One message of a dump: a device may take several, and a peer may go on in the next one. */
export function decodeWireguard(message: MessageCursor): WireguardState {
  const attributes = message.attributes(GENERIC_BYTES);
  let publicKey: string | undefined;
  let listenPort = 0;
  const peers: WireguardPeerState[] = [];
  while (attributes.next()) {
    if (attributes.type === WGDEVICE_A_PUBLIC_KEY) publicKey = encodeKey(attributes.take(KEY_BYTES));
    else if (attributes.type === WGDEVICE_A_LISTEN_PORT) listenPort = attributes.u16();
    else if (attributes.type === WGDEVICE_A_PEERS) {
      const list = attributes.nested();
      while (list.next()) peers.push(decodePeer(list.nested()));
    }
  }
  return { ...(publicKey === undefined ? {} : { publicKey }), listenPort, peers };
}

/**
 * The device out of the messages of its dump, undefined when there are none. What tells of the device itself is in
 * the first message; a peer that does not fit goes on in the next one, with its key and further prefixes only.
 */
export function joinWireguard(parts: readonly WireguardState[]): WireguardState | undefined {
  const [first] = parts;
  if (!first) return undefined;
  const peers: WireguardPeerState[] = [];
  for (const peer of parts.flatMap((part) => part.peers)) {
    const last = peers.at(-1);
    if (last?.publicKey === peer.publicKey) {
      peers[peers.length - 1] = { ...last, allowedIPs: [...last.allowedIPs, ...peer.allowedIPs] };
    } else peers.push(peer);
  }
  return { ...first, peers };
}

function decodePeer(attributes: AttributeCursor): WireguardPeerState {
  let publicKey: string | undefined;
  let presharedKey: string | undefined;
  let endpoint: WireguardEndpoint | undefined;
  let lastHandshake = 0;
  const numbers = { keepalive: 0, rxBytes: 0, txBytes: 0 };
  const allowedIPs: string[] = [];
  while (attributes.next()) {
    switch (attributes.type) {
      case WGPEER_A_PUBLIC_KEY:
        publicKey = encodeKey(attributes.take(KEY_BYTES));
        break;
      case WGPEER_A_PRESHARED_KEY:
        presharedKey = encodeKey(attributes.take(KEY_BYTES));
        break;
      case WGPEER_A_ENDPOINT:
        endpoint = decodeSocketAddress(attributes.take(attributes.length));
        break;
      case WGPEER_A_PERSISTENT_KEEPALIVE_INTERVAL:
        numbers.keepalive = attributes.u16();
        break;
      case WGPEER_A_LAST_HANDSHAKE_TIME:
        lastHandshake = attributes.u64();
        break;
      case WGPEER_A_RX_BYTES:
        numbers.rxBytes = attributes.u64();
        break;
      case WGPEER_A_TX_BYTES:
        numbers.txBytes = attributes.u64();
        break;
      case WGPEER_A_ALLOWEDIPS: {
        const list = attributes.nested();
        while (list.next()) allowedIPs.push(decodeAllowedIP(list.nested()));
        break;
      }
    }
  }
  if (publicKey === undefined) throw malformedFault("a WireGuard peer without a public key");
  return {
    publicKey,
    ...(presharedKey === undefined ? {} : { presharedKey }),
    ...(endpoint === undefined ? {} : { endpoint }),
    ...numbers,
    allowedIPs,
    ...(lastHandshake === 0 ? {} : { lastHandshake }),
  };
}

function decodeAllowedIP(attributes: AttributeCursor): string {
  let address: string | undefined;
  let length: number | undefined;
  while (attributes.next()) {
    if (attributes.type === WGALLOWEDIP_A_IPADDR) address = attributes.address();
    else if (attributes.type === WGALLOWEDIP_A_CIDR_MASK) length = attributes.u8();
  }
  if (address === undefined || length === undefined)
    throw malformedFault("an allowed prefix without address");
  return `${address}/${length}`;
}
