import { attempt, type Run, refusedFault } from "../command.ts";
import type { Family } from "../intent.ts";
import { familyName } from "../nftables/chains.ts";
import { diffMembers, type MemberFilter, samePackets } from "./filter.ts";
import { parseFilter } from "./parse.ts";
import { renderChange, renderFilter, renderRemoval, TABLE } from "./render.ts";

/** strerror(ENOENT): the table to list is not there. */
const MISSING = /No such file or directory/;

/** What the kernel holds: a filter of ours, nothing, or something under our table's name that we would not write. */
export type Present = MemberFilter | "nothing" | "foreign";

/** `nft -j list table ip flannel-members`. Throws Fault `TRAFFIC_REFUSED`, or what `run` throws. */
export async function readTable(run: Run, family: Family): Promise<Present> {
  const args = ["-j", "list", "table", familyName(family), TABLE];
  const { stdout, stderr, failed } = await attempt(run, "nft", args);
  if (!failed) return parseFilter(stdout, family) ?? "foreign";
  if (MISSING.test(stderr)) return "nothing";
  throw refusedFault(`list ${describeTable(family)}`, "nft", stderr);
}

/**
 * `nft -f -`: turns what is there into what is wanted, in one transaction, and only when they differ; where just the
 * members do, only those travel. Returns what it did, in words, undefined for nothing. Throws Fault `TRAFFIC_REFUSED`.
 */
export async function writeTable(
  run: Run,
  family: Family,
  present: Present,
  wanted: MemberFilter | undefined,
): Promise<string | undefined> {
  if (wanted === undefined) {
    if (present === "nothing") return undefined;
    await transact(run, family, renderRemoval(family));
    return `removed ${describeTable(family)}`;
  }
  if (typeof present === "object" && samePackets(present, wanted)) {
    const change = diffMembers(present, wanted);
    if (change.added.length + change.removed.length === 0) return undefined;
    await transact(run, family, renderChange(family, change));
    return `${describeTable(family)}: ${change.added.length} members in, ${change.removed.length} out`;
  }
  await transact(run, family, renderFilter(wanted));
  return `${present === "nothing" ? "created" : "replaced"} ${describeTable(family)}`;
}

async function transact(run: Run, family: Family, text: string): Promise<void> {
  const { failed, stderr } = await attempt(run, "nft", ["-f", "-"], text);
  if (failed) throw refusedFault(`write ${describeTable(family)}`, "nft", stderr);
}

/** For messages: `nftables table ip flannel-members`. */
export function describeTable(family: Family): string {
  return `nftables table ${familyName(family)} ${TABLE}`;
}
