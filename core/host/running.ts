import { readdirSync } from "node:fs";
import { procLink, procText } from "./proc.ts";

/** Name of the daemon's process (comm), of ours and of any other flannel. */
const NAME = "flanneld";

/**
 * Pids of the daemons (ours or another flannel's) that run in the network namespace of this process, itself left out.
 * A command of the executable that merely answers (`flanneld status`) is none.
 */
export function findDaemons(): readonly number[] {
  const home = procLink("self", "ns/net");
  return readdirSync("/proc")
    .filter((entry) => /^\d+$/.test(entry) && Number(entry) !== process.pid)
    .filter((pid) => isDaemon(pid) && home !== undefined && procLink(pid, "ns/net") === home)
    .map(Number);
}

function isDaemon(pid: string): boolean {
  if (procText(pid, "comm").trim() !== NAME) return false;
  const [, first = ""] = procText(pid, "cmdline").split("\0");
  return first === "" || first.startsWith("-") || first === "run";
}
