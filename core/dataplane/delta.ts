import type { PeerDelta } from "../../plugins/sdk/backend.ts";
import type { Peer } from "../lease/lease.ts";

/** Nothing changed. */
export const NO_CHANGE: PeerDelta = { added: [], changed: [], removed: [] };

/** Two changes that follow each other as one: what a backend has to know that has seen neither of them. */
export function mergeDeltas(first: PeerDelta, second: PeerDelta): PeerDelta {
  const added = byKey(first.added);
  const changed = byKey(first.changed);
  const removed = new Set(first.removed);
  for (const key of second.removed) {
    // One that came and went again is still named: the backend may have taken it in before it failed.
    removed.add(key);
    added.delete(key);
    changed.delete(key);
  }
  // One that went and came back was known before.
  for (const peer of second.added) (removed.delete(peer.key) ? changed : added).set(peer.key, peer);
  for (const peer of second.changed) (added.has(peer.key) ? added : changed).set(peer.key, peer);
  return { added: [...added.values()], changed: [...changed.values()], removed: [...removed] };
}

function byKey(peers: readonly Peer[]): Map<string, Peer> {
  return new Map(peers.map((peer) => [peer.key, peer]));
}
