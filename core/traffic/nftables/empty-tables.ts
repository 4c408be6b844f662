import { attempt, type Run } from "../command.ts";

/** The tables that `iptables-nft` and `ip6tables-nft` keep their rules in, and make when the first one is written. */
const TABLES = [
  ["ip", "filter"],
  ["ip", "nat"],
  ["ip6", "filter"],
  ["ip6", "nat"],
] as const;

/** What `nft -j list table` prints of an object, as far as it is looked at. */
interface Listed {
  readonly metainfo?: unknown;
  readonly table?: unknown;
  readonly chain?: { readonly hook?: string; readonly policy?: string };
}

/**
 * `nft delete table`: removes the tables of iptables-nft in which nothing is left but empty base chains that accept:
 * iptables makes them with the first rule and never removes them. For an operator's cleanup only, since another program
 * may write its first rule between the look and the removal. Returns what was removed, in words.
 */
export async function removeEmptyTables(run: Run): Promise<readonly string[]> {
  const removed: string[] = [];
  for (const [family, table] of TABLES) {
    const { stdout, failed } = await attempt(run, "nft", ["-j", "list", "table", family, table]);
    if (failed || !isEmptyTable(stdout)) continue;
    const deleted = await attempt(run, "nft", ["delete", "table", family, table]);
    if (!deleted.failed) removed.push(`empty table ${family} ${table}`);
  }
  return removed;
}

/** Whether a listing of a table shows nothing that has any effect. */
export function isEmptyTable(json: string): boolean {
  const { nftables = [] } = JSON.parse(json) as { nftables?: readonly Listed[] };
  return nftables.every(
    ({ metainfo, table, chain }) =>
      metainfo !== undefined ||
      table !== undefined ||
      (chain?.hook !== undefined && (chain.policy ?? "accept") === "accept"),
  );
}
