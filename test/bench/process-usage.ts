import { readFileSync } from "node:fs";

/** USER_HZ, the unit of times in /proc/PID/stat: 100 on every Linux that Bun runs on (proc_pid_stat(5)). */
const TICKS_PER_SECOND = 100;

/** Resident memory in megabytes (10^6 bytes), as in /proc/PID/status (proc_pid_status(5)). */
export interface Memory {
  /** VmRSS. */
  readonly rss: number;
  /** RssAnon: what cannot be dropped, only swapped. */
  readonly anonymous: number;
}

/** CPU seconds of a process so far, all threads and its ended children included, in steps of 10 ms. */
export function readCpuSeconds(pid: number): number {
  return parseCpuSeconds(readFileSync(`/proc/${pid}/stat`, "utf8"));
}

/** utime, stime, cutime and cstime of a line of /proc/PID/stat, added up, in seconds. */
export function parseCpuSeconds(stat: string): number {
  // The name in brackets may hold anything, also spaces and brackets; field 3 follows the last one.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
  if (fields.length < 15 || Number.isNaN(ticks)) throw new Error(`not a stat line: ${stat}`);
  return ticks / TICKS_PER_SECOND;
}

/** Resident memory of a process now. */
export function readMemory(pid: number): Memory {
  return parseMemory(readFileSync(`/proc/${pid}/status`, "utf8"));
}

/** Reads the text of /proc/PID/status. */
export function parseMemory(status: string): Memory {
  return { rss: megabytes(status, "VmRSS"), anonymous: megabytes(status, "RssAnon") };
}

function megabytes(status: string, field: string): number {
  const kibibytes = new RegExp(`^${field}:\\s*(\\d+) kB$`, "m").exec(status)?.[1];
  if (kibibytes === undefined) throw new Error(`/proc/PID/status has no ${field}`);
  return (Number(kibibytes) * 1024) / 1e6;
}

/** How long {@link untilQuiet} looks at a time, ms, and what it takes for quiet, CPU seconds. */
const QUIET = { window: 500, cpu: 0.01 };

/**
 * Waits until a process does next to nothing (two windows of 500 ms with 10 ms of CPU time at most) and returns its
 * CPU seconds until the first of them. Throws when it does not come to rest within `deadline` ms.
 */
export async function untilQuiet(pid: number, deadline = 60_000): Promise<number> {
  const end = performance.now() + deadline;
  let quiet = 0;
  for (let before = readCpuSeconds(pid), last = before; performance.now() < end; ) {
    await Bun.sleep(QUIET.window);
    const now = readCpuSeconds(pid);
    quiet = now - last <= QUIET.cpu + 1e-9 ? quiet + 1 : 0;
    if (quiet === 0) before = now;
    if (quiet === 2) return before;
    last = now;
  }
  throw new Error(`process ${pid} is still busy after ${deadline} ms`);
}
