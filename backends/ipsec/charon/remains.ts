import { readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { basename } from "node:path";

/** Where charon keeps its process id (IPSEC_PIDDIR of its build); it refuses to start while that process lives. */
const PID_FILE = "/var/run/charon.pid";

/** A process as it can be told from a later one with the same id. */
interface Started {
  readonly pid: number;
  /** Field 22 of /proc/PID/stat (proc(5)): clock ticks after boot. */
  readonly since: string;
}

/** Notes down the charon that was started, for the next run; core removes what it left once another backend runs. */
export function rememberCharon(path: string, pid: number): void {
  const since = startOf(pid);
  if (since !== undefined)
    writeFileSync(path, JSON.stringify({ pid, since } satisfies Started), { mode: 0o600 });
}

/**
 * `kill -KILL` of the charon that a run before this one started, where it still lives: it should have died with that
 * run. Then charon's own note of its process id is removed if no charon has that id, since a later process with the
 * same id would keep charon from starting. Returns the id of the process that was killed.
 */
export function clearRemains(path: string): number | undefined {
  const killed = killFormer(path);
  const noted = Number.parseInt(readText(PID_FILE) ?? "", 10);
  if (noted > 0 && (noted === killed || !isCharon(noted))) rmSync(PID_FILE, { force: true });
  return killed;
}

/** There is no charon of ours any more whose remains would be ours to remove. */
export function forgetCharon(path: string): void {
  rmSync(path, { force: true });
}

function killFormer(path: string): number | undefined {
  try {
    const { pid, since } = JSON.parse(readFileSync(path, "utf8")) as Partial<Started>;
    if (typeof pid !== "number" || pid <= 1 || since === undefined || startOf(pid) !== since)
      return undefined;
    process.kill(pid, "SIGKILL");
    return pid;
  } catch {
    return undefined;
  }
}

function isCharon(pid: number): boolean {
  try {
    return basename(readlinkSync(`/proc/${pid}/exe`)).startsWith("charon");
  } catch {
    return false;
  }
}

/** The command of /proc/PID/stat stands in parentheses and may hold anything; what follows it are single words. */
function startOf(pid: number): string | undefined {
  const stat = readText(`/proc/${pid}/stat`);
  return stat?.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
}

function readText(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}
