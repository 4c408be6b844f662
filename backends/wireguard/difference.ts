import { isIPv6 } from "node:net";
import type { WireguardEndpoint, WireguardPeerChange, WireguardPeerState, WireguardState } from "flannel/sdk";
import type { WantedPeer } from "./peers.ts";

/**
 * Seconds after a handshake during which its keys are used at all (REJECT_AFTER_TIME, WireGuard protocol §6.1): within
 * them the peer was heard from at the endpoint the device has.
 */
const SESSION_SECONDS = 180;

/** What is known beside the device's own state. */
export interface Knowledge {
  /** Endpoints that we wanted last, by public key; empty after a start. */
  readonly endpoints: ReadonlyMap<string, WireguardEndpoint>;
  /** Public keys of peers that cannot be expected where the device has them, or do not answer there since the start. */
  readonly silent: ReadonlySet<string>;
  /** Seconds since 1970. */
  readonly now: number;
}

/**
 * What makes the device have the wanted peers and no others: removals first, so that a key that changed never leaves
 * two peers for one subnet. Empty when all is well. Pure.
 */
export function diffPeers(
  wanted: readonly WantedPeer[],
  actual: WireguardState,
  knowledge: Knowledge,
): readonly WireguardPeerChange[] {
  const has = new Map(actual.peers.map((peer) => [peer.publicKey, peer]));
  const keys = new Set(wanted.map(({ publicKey }) => publicKey));
  return [
    ...actual.peers
      .filter(({ publicKey }) => !keys.has(publicKey))
      .map(({ publicKey }): WireguardPeerChange => ({ publicKey, remove: true })),
    ...wanted.flatMap((peer) => diffPeer(peer, has.get(peer.publicKey), knowledge)),
  ];
}

function diffPeer(
  wanted: WantedPeer,
  actual: WireguardPeerState | undefined,
  knowledge: Knowledge,
): readonly WireguardPeerChange[] {
  if (!actual) return [wanted];
  const change = {
    ...(wanted.presharedKey === actual.presharedKey ? {} : { presharedKey: wanted.presharedKey ?? null }),
    ...(movesEndpoint(wanted, actual, knowledge) ? { endpoint: wanted.endpoint } : {}),
    ...(wanted.keepalive === actual.keepalive ? {} : { keepalive: wanted.keepalive }),
    ...(hasSame(wanted.allowedIPs, actual.allowedIPs) ? {} : { allowedIPs: wanted.allowedIPs }),
  };
  return Object.keys(change).length === 0 ? [] : [{ publicKey: wanted.publicKey, ...change }];
}

/**
 * A device follows a peer to wherever it is heard from (a NAT, a second address). That is left alone while the two
 * talk; the lease counts when it was changed, when nothing has been heard for a session's time, and for a peer that is
 * silent since the start: it may have moved before. So it may when the device has it over the other family then: the
 * mode was another. A handshake that lies
 * ahead, since the clock was set back, counts as heard for no longer than that.
 */
function movesEndpoint(
  { publicKey, endpoint }: WantedPeer,
  actual: WireguardPeerState,
  { endpoints, silent, now }: Knowledge,
): boolean {
  if (actual.endpoint === undefined) return true;
  if (isSame(actual.endpoint, endpoint)) return false;
  if (silent.has(publicKey)) return true;
  const before = endpoints.get(publicKey);
  if (before === undefined && isIPv6(actual.endpoint.address) !== isIPv6(endpoint.address)) return true;
  if (before !== undefined && !isSame(before, endpoint)) return true;
  return actual.lastHandshake === undefined || Math.abs(now - actual.lastHandshake) > SESSION_SECONDS;
}

function isSame(a: WireguardEndpoint, b: WireguardEndpoint): boolean {
  return a.address === b.address && a.port === b.port;
}

function hasSame(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.toSorted().join() === b.toSorted().join();
}
