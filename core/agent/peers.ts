import type { Driver } from "../dataplane/driver.ts";
import type { Families, Peer } from "../lease/lease.ts";
import { toPeer } from "../lease/lease.ts";
import type { RejectedPeer } from "../lease/peer-entry.ts";
import type { PeerDelta, PeerTable } from "../lease/peers.ts";
import type { LeaseStore, PeerUpdate } from "../lease/store.ts";
import type { Log } from "../observe/log.ts";
import type { Pulse } from "../observe/loops.ts";
import type { Findings } from "../observe/own-findings.ts";
import { yieldToEventLoop } from "../retry/event-loop.ts";
import { Pace } from "../retry/pace.ts";
import type { MemberKeeper } from "../traffic/members/keeper.ts";
import type { Journal } from "./journal.ts";
import { noteDelta } from "./peer-events.ts";
import { membersOf } from "./traffic.ts";

export interface PeersInput {
  readonly store: LeaseStore;
  readonly driver: Driver;
  readonly table: PeerTable;
  readonly families: Families;
  /** Told who is a member now. */
  readonly members: Pick<MemberKeeper, "follow">;
  readonly log: Log;
  readonly health: Findings;
  readonly journal: Journal;
  readonly pulse: Pulse;
  /** Called after each update that is in the kernel, with the number of peers; the first call means "synced". */
  readonly synced: (peers: number) => void;
  readonly signal: AbortSignal;
}

/** Longest time one update may take to be in the kernel, ms: a backend that acts itself may wait for its time-outs. */
const LONGEST_UPDATE_MS = 600_000;

/** Follows the other nodes' leases and hands every change to the driver, until aborted. */
export async function followPeers(input: PeersInput): Promise<void> {
  const { store, driver, table, families, pulse, signal } = input;
  const peers = new Map<string, Peer>();
  for (const lease of table.list()) peers.set(lease.key, toPeer(lease, families));
  let first = true;
  for await (const update of store.watchPeers(signal)) {
    pulse(LONGEST_UPDATE_MS);
    // Thousands may come at once: whoever read them has used up its share of the event loop.
    await yieldToEventLoop();
    const delta = await table.updateInTurns(update);
    const pace = new Pace();
    const removed = delta.removed.map((lease) => lease.key);
    const added: Peer[] = [];
    for (const lease of delta.added) {
      added.push(toPeer(lease, families));
      if (pace.isDue()) await pace.rest();
    }
    const changed = delta.changed.map(({ after }) => toPeer(after, families));
    for (const key of removed) peers.delete(key);
    for (const peer of added) peers.set(peer.key, peer);
    for (const peer of changed) peers.set(peer.key, peer);
    refreshRevisions(peers, table, update);
    // Told first: the table tells a rejection only once, and the driver may fail.
    reportRejections(input.health, delta);
    logDelta(input.log, update, delta);
    noteDelta(input.journal, update, delta);
    // Let in before they are routed to; the first time the filter is in force before this node is ready.
    const filtered = input.members.follow(membersOf(peers.values(), families));
    await driver.update(peers, { added, changed, removed });
    if (first) await filtered;
    first = false;
    input.synced(peers.size);
    // Nothing need happen in a quiet cluster.
    pulse(Number.POSITIVE_INFINITY);
  }
}

/**
 * A lease that was written anew as it was is no change, but a newer one: a node that starts now sees it so, and of two
 * leases with one thing all nodes have to choose the same.
 */
function refreshRevisions(peers: Map<string, Peer>, table: PeerTable, update: PeerUpdate): void {
  for (const { key } of update.type === "snapshot" ? update.leases : update.puts) {
    const peer = peers.get(key);
    const modRevision = table.get(key)?.modRevision;
    if (!peer || modRevision === undefined || peer.modRevision === modRevision) continue;
    peers.set(key, { ...peer, modRevision });
  }
}

function reportRejections(health: Findings, delta: PeerDelta): void {
  for (const key of delta.readmitted) health.clear("PEER_REJECTED", key);
  for (const rejected of delta.rejected) {
    health.raise(
      {
        code: "PEER_REJECTED",
        // Two other nodes' quarrel does not make this one unready.
        severity: rejected.reason === "own-subnet" ? "error" : "warning",
        title: "a lease is not routed to",
        text: describeRejection(rejected),
        fix: "If that node is gone, delete its lease key from the store; otherwise give it another subnet.",
      },
      rejected.lease.key,
    );
  }
}

function describeRejection({ lease, reason, by }: RejectedPeer): string {
  const who = `${lease.key} of ${lease.attrs.publicIP ?? lease.attrs.publicIPv6 ?? "an unknown address"}`;
  const owner = by.attrs.publicIP ?? by.attrs.publicIPv6 ?? "an unknown address";
  switch (reason) {
    case "own-node":
      return `${who} carries this node's own identity`;
    case "own-address":
      return `${who} claims this node's own address`;
    case "own-subnet":
      return `${who} overlaps this node's own subnet ${by.key}`;
    case "overlap":
      return `${who} overlaps ${by.key} of ${owner}`;
  }
}

/** How many keys a line names before it only counts. */
const NAMED = 5;

/** One line per change in a small cluster, one line per burst in a large one. */
function logDelta(log: Log, update: PeerUpdate, delta: PeerDelta): void {
  const { added, changed, removed } = delta;
  if (update.type === "snapshot") {
    log.info("peers listed", {
      added: added.length,
      changed: changed.length,
      removed: removed.length,
      revision: update.revision,
    });
    return;
  }
  const name = (leases: readonly { readonly key: string }[]) =>
    leases.slice(0, NAMED).map((lease) => lease.key);
  const count = added.length + changed.length + removed.length;
  if (count === 0) return;
  log.info("peers changed", {
    ...(added.length > 0 ? { added: name(added) } : {}),
    ...(changed.length > 0 ? { changed: name(changed.map(({ after }) => after)) } : {}),
    ...(removed.length > 0 ? { removed: name(removed) } : {}),
    ...(count > NAMED ? { count } : {}),
  });
}
