import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** Name of the daemon's process (comm), of ours and of any other flannel. */
const NAME = "flanneld";

/**
 * Pids of the daemons (ours or another flannel's) that run in the network namespace of this process, itself left out.
 * A command of the executable that merely answers (`flanneld status`) is none.
 */
export function findDaemons(): readonly number[] {
  const home = linkOf("self", "ns/net");
  return readdirSync("/proc")
    .filter((entry) => /^\d+$/.test(entry) && Number(entry) !== process.pid)
    .filter((pid) => isDaemon(pid) && home !== undefined && linkOf(pid, "ns/net") === home)
    .map(Number);
}

function isDaemon(pid: string): boolean {
  if (textOf(pid, "comm").trim() !== NAME) return false;
  const [, first = ""] = textOf(pid, "cmdline").split("\0");
  return first === "" || first.startsWith("-") || first === "run";
}

function textOf(pid: string, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8");
  } catch {
    // It ended meanwhile.
    return "";
  }
}

function linkOf(pid: string, file: string): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/${file}`);
  } catch {
    return undefined;
  }
}
