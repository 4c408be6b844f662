import { existsSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { basename } from "node:path";
import type { Kernel } from "../netlink/kernel.ts";
import type { RoutingRule } from "../netlink/objects.ts";
import type { Log } from "../observe/log.ts";

/**
 * The rule that charon makes when it starts, for the routes of its own, and takes away only when it is let end (defaults
 * of its options `routing_table` and `routing_table_prio`). The ipsec backend's charon is killed, so that its tunnels
 * go on.
 */
const RULE: RoutingRule = { priority: 220, table: 220 };
/** Where every charon keeps its process id (IPSEC_PIDDIR of its build). */
const PID_FILE = "/var/run/charon.pid";

/** The file in which the ipsec backend notes down the charon it has started; it stays until another backend follows. */
export function charonNote(subnetFile: string): string {
  return `${subnetFile}.charon`;
}

/** Whether a charon that the ipsec backend started was here. */
export function hadCharon(note: string | undefined): note is string {
  return note !== undefined && existsSync(note);
}

/**
 * `kill -KILL` of the noted charon where it outlived its daemon, `ip -4|-6 rule delete priority 220 table 220` unless
 * an operator's charon runs now, `rm NOTE`: removes what the ipsec backend's charon left.
 */
export async function removeCharonRemains(
  kernel: Pick<Kernel, "deleteRule">,
  note: string | undefined,
  log: Pick<Log, "info">,
): Promise<void> {
  if (!hadCharon(note)) return;
  const killed = killNoted(note);
  const running = Number.parseInt(readText(PID_FILE), 10);
  if (running === killed || !isCharon(running)) {
    const removed = [await kernel.deleteRule(4, RULE), await kernel.deleteRule(6, RULE)];
    if (removed.includes(true))
      log.info("removed the routing rule of charon, left by an earlier configuration");
  }
  rmSync(note, { force: true });
}

/** Returns the id of the process that was killed: the one that was noted down, not a later one with the same id. */
function killNoted(note: string): number | undefined {
  try {
    const { pid, since } = JSON.parse(readText(note)) as { readonly pid?: unknown; readonly since?: unknown };
    if (typeof pid !== "number" || pid <= 1 || typeof since !== "string" || startOf(pid) !== since)
      return undefined;
    process.kill(pid, "SIGKILL");
    return pid;
  } catch {
    // Not readable, or gone.
    return undefined;
  }
}

/** Clock ticks after boot: field 22 of /proc/PID/stat (proc(5)); the command before it may hold anything. */
function startOf(pid: number): string | undefined {
  const stat = readText(`/proc/${pid}/stat`);
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
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
