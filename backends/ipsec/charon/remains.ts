import { readFileSync, readlinkSync, rmSync } from "node:fs";
import { basename } from "node:path";

/** Where charon listens unless strongswan.conf says otherwise (vici.socket). */
export const SOCKET = "/var/run/charon.vici";
/** Where charon keeps its process id (IPSEC_PIDDIR of its build); it refuses to start while that process lives. */
const PID_FILE = "/var/run/charon.pid";

/**
 * Removes what a charon that was killed left in the file system, before one of ours starts. Its socket would take
 * connections for nobody, and a later process with its id would keep the next charon from starting.
 */
export function clearRemains(): void {
  rmSync(SOCKET, { force: true });
  const noted = Number.parseInt(readText(PID_FILE), 10);
  if (noted > 0 && !isCharon(noted)) rmSync(PID_FILE, { force: true });
}

function isCharon(pid: number): boolean {
  try {
    return basename(readlinkSync(`/proc/${pid}/exe`)).startsWith("charon");
  } catch {
    return false;
  }
}

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
