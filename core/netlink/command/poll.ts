import { sleep } from "../../retry/backoff.ts";
import type { Notice } from "../kernel.ts";
import type { Lists } from "./lists.ts";

/** Everything notices can be about, by identity. */
export type Snapshot = ReadonlyMap<string, { readonly notice: Notice; readonly text: string }>;

/**
 * The kernel's state at some moment. Neighbours and FDB entries only of vxlan devices: those of other devices come
 * and go by themselves, and no notice about them is of use here.
 */
export async function takeSnapshot(lists: Lists): Promise<Snapshot> {
  const snapshot = new Map<string, { notice: Notice; text: string }>();
  const add = (key: string, notice: Notice) => snapshot.set(key, { notice, text: JSON.stringify(notice) });
  const links = await lists.links();
  for (const link of links) add(`link ${link.index}`, { kind: "link", action: "put", link });
  for (const address of await lists.addresses()) {
    add(`address ${address.dev} ${address.address}`, { kind: "address", action: "put", address });
  }
  for (const nexthop of await lists.nexthops()) {
    add(`nexthop ${nexthop.id}`, { kind: "nexthop", action: "put", nexthop });
  }
  for (const { name } of links.filter(({ type }) => type === "vxlan")) {
    for (const family of [4, 6] as const) {
      for (const neighbour of await lists.neighbours(family, name)) {
        add(`neighbour ${name} ${neighbour.ip}`, { kind: "neighbour", action: "put", neighbour });
      }
    }
    for (const fdb of await lists.fdb(name)) {
      add(`fdb ${name} ${fdb.mac} ${fdb.dst}`, { kind: "fdb", action: "put", fdb });
    }
  }
  for (const family of [4, 6] as const) {
    for (const route of await lists.routes(family)) {
      // One IPv4 route per destination and metric; IPv6 may have one per device, too.
      const dev = family === 4 ? "" : route.dev;
      add(`route ${route.dst} ${route.metric} ${dev}`, { kind: "route", action: "put", route });
    }
  }
  return snapshot;
}

/** What happened between two snapshots: what is gone, last first, then what is new or different. */
export function compareSnapshots(before: Snapshot, after: Snapshot): Notice[] {
  const gone = [...before]
    .filter(([key]) => !after.has(key))
    .map(([, { notice }]) => ({ ...notice, action: "delete" as const }));
  const changed = [...after]
    .filter(([key, { text }]) => before.get(key)?.text !== text)
    .map(([, { notice }]) => notice);
  return [...gone.reverse(), ...changed];
}

/** Notices by looking again every `interval` ms, against a first look that was taken before. */
export async function* pollNotices(
  baseline: Promise<Snapshot>,
  lists: Lists,
  interval: number,
  signal: AbortSignal,
): AsyncGenerator<readonly Notice[]> {
  let before = await baseline;
  for (;;) {
    await sleep(interval, signal);
    if (signal.aborted) return;
    const after = await takeSnapshot(lists);
    const notices = compareSnapshots(before, after);
    before = after;
    if (notices.length > 0) yield notices;
  }
}
