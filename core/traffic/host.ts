import { readFileSync } from "node:fs";
import { type NftablesGeneration, openNftablesGeneration } from "../netlink/nftables-generation.ts";
import type { Run } from "./command.ts";
import type { Family } from "./intent.ts";

/** What the traffic rules need of the machine. */
export interface TrafficHost {
  readonly run: Run;
  /** Whether a command is installed. */
  has(command: string): boolean;
  /**
   * Tables of iptables-legacy that exist in the kernel; empty when it has none, undefined when it cannot be told.
   * Costs no process, and unlike listing them makes none.
   */
  legacyTables(family: Family): readonly string[] | undefined;
  /** Absent where netlink cannot be spoken: every look then costs a process. */
  readonly generation?: NftablesGeneration;
}

const LEGACY_TABLES: Readonly<Record<Family, string>> = {
  4: "/proc/net/ip_tables_names",
  6: "/proc/net/ip6_tables_names",
};

/** The machine we run on, in the network namespace of the caller. `run` is core/host/exec's. */
export function openTrafficHost(run: Run): TrafficHost {
  const generation = openNftablesGeneration();
  return {
    run,
    has: (command) => Bun.which(command) !== null,
    legacyTables: (family) => readLegacyTables(LEGACY_TABLES[family]),
    ...(generation ? { generation } : {}),
  };
}

function readLegacyTables(file: string): readonly string[] | undefined {
  try {
    return readFileSync(file, "utf8").split("\n").filter(Boolean);
  } catch (error) {
    // The file comes with the kernel's module: without it there are no tables.
    return (error as NodeJS.ErrnoException).code === "ENOENT" ? [] : undefined;
  }
}
