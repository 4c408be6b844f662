import { describeOwner } from "../lease/identity.ts";
import type { Lease, LeaseAttrs } from "../lease/lease.ts";
import type { PeerDelta } from "../lease/peers.ts";
import type { PeerUpdate } from "../lease/store.ts";
import type { Journal } from "./journal.ts";

/** More changes of one kind at a time become one entry. */
const ONE_BY_ONE = 20;

/** Writes down what an update did to the peers, and why as far as the store tells. */
export function noteDelta(journal: Journal, update: PeerUpdate, delta: PeerDelta): void {
  const at = `at revision ${update.revision}`;
  const listed = update.type === "snapshot";
  const note = (leases: readonly Lease[], what: string, one: (lease: Lease, index: number) => string) => {
    if (leases.length <= ONE_BY_ONE) {
      for (const [index, lease] of leases.entries()) journal.note("peer", one(lease, index), [lease.key]);
      return;
    }
    const keys = leases.map((lease) => lease.key);
    journal.note("peer", `${leases.length} peers ${what} ${at}${listed ? " by a complete list" : ""}`, keys);
  };
  const how = listed ? `listed ${at}` : at;
  note(delta.added, "added", (lease) => `added ${lease.key}: ${describeLease(lease)}, ${how}`);
  note(
    delta.changed.map(({ after }) => after),
    "changed",
    (lease, index) => {
      const before = delta.changed[index]?.before.attrs;
      return `changed ${lease.key}: ${before ? describeChange(before, lease.attrs) : ""}, ${how}`;
    },
  );
  note(delta.removed, "removed", (lease) => {
    const why = listed ? `no longer listed ${at}` : `its lease was deleted, ran out or gave way ${at}`;
    return `removed ${lease.key}: ${describeLease(lease)}, ${why}`;
  });
}

function describeLease({ attrs }: Lease): string {
  return `${describeOwner(attrs)}${attrs.backendType === "" ? "" : `, ${attrs.backendType}`}`;
}

/** The attributes that differ, with their values before and after. */
export function describeChange(before: LeaseAttrs, after: LeaseAttrs): string {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])] as (keyof LeaseAttrs)[];
  const changes = names
    .filter((name) => !Bun.deepEquals(before[name], after[name]))
    .map((name) => `${name} ${show(before[name])} → ${show(after[name])}`);
  return changes.length === 0 ? "written anew with the same content" : changes.join(", ");
}

function show(value: unknown): string {
  const text = value === undefined ? "none" : typeof value === "string" ? value : JSON.stringify(value);
  return text.length > 120 ? `${text.slice(0, 120).toWellFormed()}…` : text;
}
