import { badObjectFault } from "../faults.ts";
import { beginGeneric } from "../generic.ts";
import { familyOf, type MessageBuilder, prefixLengthOf, slashOf } from "../wire/builder.ts";
import { AF_INET, AF_INET6, NLM_F_DUMP } from "../wire/constants.ts";
import type { WireguardChange, WireguardPeerChange } from "../wireguard-objects.ts";
import {
  WG_CMD_GET_DEVICE,
  WG_CMD_SET_DEVICE,
  WG_GENL_VERSION,
  WGALLOWEDIP_A_CIDR_MASK,
  WGALLOWEDIP_A_FAMILY,
  WGALLOWEDIP_A_IPADDR,
  WGDEVICE_A_IFNAME,
  WGDEVICE_A_LISTEN_PORT,
  WGDEVICE_A_PEERS,
  WGDEVICE_A_PRIVATE_KEY,
  WGPEER_A_ALLOWEDIPS,
  WGPEER_A_ENDPOINT,
  WGPEER_A_FLAGS,
  WGPEER_A_PERSISTENT_KEEPALIVE_INTERVAL,
  WGPEER_A_PRESHARED_KEY,
  WGPEER_A_PUBLIC_KEY,
  WGPEER_F_REMOVE_ME,
  WGPEER_F_REPLACE_ALLOWEDIPS,
} from "./wireguard-constants.ts";
import { decodeKey, KEY_BYTES } from "./wireguard-key.ts";
import { encodeSocketAddress } from "./wireguard-socket-address.ts";

/** Bytes of a message after which the next peer, or the next allowed prefix, goes into another one. */
const FULL_BYTES = 16 * 1024;
/** Longest keep-alive interval: 16 bits of seconds. */
const LONGEST_KEEPALIVE = 0xffff;

/** Where the encoding of a change goes on: in the peer, and in its allowed prefixes. */
export interface ChangePosition {
  readonly peer: number;
  readonly allowedIP: number;
}

/** `wg show DEV dump` */
export function encodeWireguardDump(
  builder: MessageBuilder,
  sequence: number,
  family: number,
  dev: string,
): void {
  const header = { family, command: WG_CMD_GET_DEVICE, version: WG_GENL_VERSION, flags: NLM_F_DUMP };
  beginGeneric(builder, sequence, header);
  builder.attributeText(WGDEVICE_A_IFNAME, dev);
  builder.end();
}

/**
 * `wg set DEV …`: one message with as much of the change as fits, from a position on. Returns where the next message
 * begins, undefined when this one holds the rest. Throws Fault `NETLINK_BAD_OBJECT`.
 */
export function encodeWireguardChange(
  builder: MessageBuilder,
  sequence: number,
  target: { readonly family: number; readonly dev: string },
  change: WireguardChange,
  from?: ChangePosition,
): ChangePosition | undefined {
  const { family, dev } = target;
  beginGeneric(builder, sequence, { family, command: WG_CMD_SET_DEVICE, version: WG_GENL_VERSION });
  builder.attributeText(WGDEVICE_A_IFNAME, dev);
  if (from === undefined) {
    if (change.privateKey !== undefined) {
      builder.attributeBytes(WGDEVICE_A_PRIVATE_KEY, decodeKey(change.privateKey));
    }
    if (change.listenPort !== undefined) builder.attributeU16(WGDEVICE_A_LISTEN_PORT, change.listenPort);
  }
  const next = encodePeers(builder, change.peers ?? [], from ?? { peer: 0, allowedIP: 0 });
  builder.end();
  return next;
}

function encodePeers(
  builder: MessageBuilder,
  peers: readonly WireguardPeerChange[],
  from: ChangePosition,
): ChangePosition | undefined {
  const start = builder.length;
  const nest = builder.openNest(WGDEVICE_A_PEERS);
  let next: ChangePosition | undefined;
  let { allowedIP } = from;
  for (let index = from.peer; index < peers.length && next === undefined; index++) {
    const peer = peers[index];
    if (!peer) continue;
    if (builder.length - start > FULL_BYTES) {
      next = { peer: index, allowedIP: 0 };
      break;
    }
    const rest = encodePeer(builder, peer, allowedIP, start + FULL_BYTES);
    if (rest !== undefined) next = { peer: index, allowedIP: rest };
    allowedIP = 0;
  }
  builder.closeNest(nest);
  return next;
}

/** One peer; where its allowed prefixes go on in the next message, undefined when all are in. */
function encodePeer(
  builder: MessageBuilder,
  peer: WireguardPeerChange,
  from: number,
  limit: number,
): number | undefined {
  const nest = builder.openNest(0);
  builder.attributeBytes(WGPEER_A_PUBLIC_KEY, decodeKey(peer.publicKey));
  if (peer.remove) {
    builder.attributeU32(WGPEER_A_FLAGS, WGPEER_F_REMOVE_ME);
    builder.closeNest(nest);
    return undefined;
  }
  if (from === 0) encodeSettings(builder, peer);
  const { allowedIPs = [] } = peer;
  const list = builder.openNest(WGPEER_A_ALLOWEDIPS);
  let at = from;
  // One at least, so that every message gets further.
  for (; at < allowedIPs.length && (at === from || builder.length < limit); at++) {
    encodeAllowedIP(builder, allowedIPs[at] ?? "");
  }
  builder.closeNest(list);
  builder.closeNest(nest);
  return at < allowedIPs.length ? at : undefined;
}

function encodeSettings(builder: MessageBuilder, peer: WireguardPeerChange): void {
  const { presharedKey, endpoint, keepalive, allowedIPs } = peer;
  if (allowedIPs !== undefined) builder.attributeU32(WGPEER_A_FLAGS, WGPEER_F_REPLACE_ALLOWEDIPS);
  if (presharedKey !== undefined) {
    const bytes = presharedKey === null ? new Uint8Array(KEY_BYTES) : decodeKey(presharedKey);
    builder.attributeBytes(WGPEER_A_PRESHARED_KEY, bytes);
  }
  if (endpoint !== undefined) builder.attributeBytes(WGPEER_A_ENDPOINT, encodeSocketAddress(endpoint));
  if (keepalive === undefined) return;
  if (!(Number.isInteger(keepalive) && keepalive >= 0 && keepalive <= LONGEST_KEEPALIVE)) {
    throw badObjectFault("a keep-alive interval", String(keepalive));
  }
  builder.attributeU16(WGPEER_A_PERSISTENT_KEEPALIVE_INTERVAL, keepalive);
}

function encodeAllowedIP(builder: MessageBuilder, cidr: string): void {
  const slash = slashOf(cidr);
  const family = familyOf(cidr);
  const length = prefixLengthOf(cidr, slash, family);
  const nest = builder.openNest(0);
  builder.attributeU16(WGALLOWEDIP_A_FAMILY, family === 4 ? AF_INET : AF_INET6);
  builder.attributeAddress(WGALLOWEDIP_A_IPADDR, cidr, family, slash);
  builder.attributeU8(WGALLOWEDIP_A_CIDR_MASK, length);
  builder.closeNest(nest);
}
