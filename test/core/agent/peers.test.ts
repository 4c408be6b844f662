import { expect, test } from "bun:test";
import { Journal } from "../../../core/agent/journal.ts";
import { followPeers } from "../../../core/agent/peers.ts";
import type { Driver } from "../../../core/dataplane/driver.ts";
import type { Lease } from "../../../core/lease/lease.ts";
import { PeerTable } from "../../../core/lease/peers.ts";
import type { LeaseStore, PeerUpdate } from "../../../core/lease/store.ts";
import { Health } from "../../../core/observe/health.ts";
import { RecordingLog } from "../observe/recording-log.ts";

/** The lease of node n; `change` overrides parts of it. */
function lease(n: number, change: Partial<Lease> = {}): Lease {
  return {
    key: `10.5.${n}.0-24`,
    subnets: { ipv4: `10.5.${n}.0/24` },
    attrs: { backendType: "vxlan", publicIP: `192.0.2.${n}`, nodeId: `n${n}` },
    modRevision: n,
    ...change,
  };
}

/** Follows the updates to their end; what the driver was told each time. */
async function follow(updates: readonly PeerUpdate[], failing?: () => void) {
  const log = new RecordingLog();
  const health = new Health(log);
  const told: { peers: string[]; added: string[]; changed: string[]; removed: readonly string[] }[] = [];
  const revisions: (number | undefined)[][] = [];
  const synced: number[] = [];
  const members: string[][] = [];
  const driver: Pick<Driver, "update"> = {
    async update(peers, { added, changed, removed }) {
      const keys = (list: Iterable<{ key: string }>) => [...list].map((each) => each.key);
      told.push({ peers: keys(peers.values()), added: keys(added), changed: keys(changed), removed });
      revisions.push([...peers.values()].map(({ modRevision }) => modRevision));
      failing?.();
    },
  };
  const store: Pick<LeaseStore, "watchPeers"> = {
    async *watchPeers() {
      yield* updates;
    },
  };
  const outcome = await followPeers({
    store: store as LeaseStore,
    driver: driver as Driver,
    table: new PeerTable({ own: lease(1) }),
    families: { ipv4: true, ipv6: false },
    members: {
      async follow({ 4: v4 = [], 6: v6 = ["off"] }) {
        members.push([...v4, ...v6].toSorted());
      },
    },
    log,
    health,
    synced: (peers) => synced.push(peers),
    journal: new Journal(),
    pulse: () => {},
    signal: new AbortController().signal,
  }).then(
    () => "ended",
    (error: Error) => error.message,
  );
  return { log, health, told, revisions, synced, members, outcome };
}

const snapshot = (...leases: Lease[]): PeerUpdate => ({ type: "snapshot", leases, revision: 10 });

test("hands on a snapshot, then changes, without ourselves", async () => {
  const moved = lease(2, {
    attrs: { backendType: "vxlan", publicIP: "192.0.2.77", nodeId: "n2" },
    modRevision: 11,
  });
  const { told, synced, members, log } = await follow([
    snapshot(lease(1), lease(2), lease(3)),
    { type: "changes", puts: [moved, lease(4)], deletes: ["10.5.3.0-24"], revision: 12 },
    { type: "changes", puts: [], deletes: [], revision: 13 },
  ]);
  expect(members.slice(0, 2)).toEqual([
    ["192.0.2.2", "192.0.2.3", "off"],
    ["192.0.2.4", "192.0.2.77", "off"],
  ]);
  expect(told.slice(0, 2)).toEqual([
    {
      peers: ["10.5.2.0-24", "10.5.3.0-24"],
      added: ["10.5.2.0-24", "10.5.3.0-24"],
      changed: [],
      removed: [],
    },
    {
      peers: ["10.5.2.0-24", "10.5.4.0-24"],
      added: ["10.5.4.0-24"],
      changed: ["10.5.2.0-24"],
      removed: ["10.5.3.0-24"],
    },
  ]);
  expect(synced.slice(0, 2)).toEqual([2, 2]);
  expect(log.messages()).toEqual(["peers listed", "peers changed"]);
  expect(log.lines[1]?.fields).toEqual({
    added: ["10.5.4.0-24"],
    changed: ["10.5.2.0-24"],
    removed: ["10.5.3.0-24"],
  });
});

test("a lease that is written anew as it was is no change, but known to be newer", async () => {
  const again = lease(2, { modRevision: 11 });
  const { told, revisions } = await follow([
    snapshot(lease(2), lease(3)),
    { type: "changes", puts: [again], deletes: [], revision: 11 },
    snapshot(again, lease(3, { modRevision: 12 })),
  ]);
  expect(told.slice(1).flatMap(({ added, changed, removed }) => [...added, ...changed, ...removed])).toEqual(
    [],
  );
  expect(revisions).toEqual([
    [2, 3],
    [11, 3],
    [11, 12],
  ]);
});

test("a burst names a few and counts the rest", async () => {
  const many = Array.from({ length: 40 }, (_, at) => lease(at + 2));
  const { log } = await follow([snapshot(), { type: "changes", puts: many, deletes: [], revision: 11 }]);
  const fields = log.lines.at(-1)?.fields;
  expect(fields).toMatchObject({ count: 40 });
  expect(fields?.added).toHaveLength(5);
});

test("a lease that takes our subnet is a finding that names its owner, told before the driver may fail", async () => {
  const thief = lease(9, { key: "10.5.0.0-16", subnets: { ipv4: "10.5.0.0/16" } });
  const { health, outcome, told } = await follow([snapshot(thief)], () => {
    throw new Error("the driver failed");
  });
  expect(outcome).toBe("the driver failed");
  expect(told[0]?.peers).toEqual([]);
  expect(health.list().map(({ code, severity, text }) => ({ code, severity, text }))).toEqual([
    {
      code: "PEER_REJECTED",
      severity: "error",
      text: "10.5.0.0-16 of 192.0.2.9 overlaps this node's own subnet 10.5.1.0-24",
    },
  ]);
});

test("it is over when that lease is gone", async () => {
  const clone = lease(9, { attrs: { backendType: "vxlan", publicIP: "192.0.2.9", nodeId: "n1" } });
  const { health, log } = await follow([snapshot(clone), snapshot()]);
  expect(health.list()).toEqual([]);
  expect(log.messages("warn")).toEqual([expect.stringContaining("carries this node's own identity")]);
  expect(log.messages("info").some((line) => line.startsWith("over: "))).toBe(true);
});
