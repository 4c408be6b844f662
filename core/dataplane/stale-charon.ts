import { existsSync, readFileSync, rmSync } from "node:fs";
import { basename } from "node:path";
import { endLasting, removeNote } from "../host/lasting.ts";
import { procLink } from "../host/proc.ts";
import { readNote } from "../host/process-note.ts";
import type { Kernel } from "../netlink/kernel.ts";
import type { RoutingRule } from "../netlink/objects.ts";
import type { Log } from "../observe/log.ts";

/**
 * The rule that charon makes when it starts, for the routes of its own, and takes away only when it is let end (defaults
 * of its options `routing_table` and `routing_table_prio`; the note has others). The ipsec backend's charon is killed,
 * so that tunnels go on until others take their place.
 */
const RULE: RoutingRule = { priority: 220, table: 220 };
/** Where every charon keeps its process id (IPSEC_PIDDIR of its build), and listens. */
const PID_FILE = "/var/run/charon.pid";
const SOCKET = "/var/run/charon.vici";

/** The file in which the ipsec backend notes down the charon it has started; it stays until another backend follows. */
export function charonNote(subnetFile: string): string {
  return `${subnetFile}.charon`;
}

/** Whether a charon that the ipsec backend started was here. */
export function hadCharon(note: string): boolean {
  return existsSync(note);
}

/**
 * `kill -KILL` of the noted charon, which outlives its daemon, `ip -4|-6 rule delete priority 220 table 220` unless an
 * operator's charon runs, `rm NOTE`: ends the ipsec backend's charon and removes what it leaves.
 */
export async function removeCharonRemains(
  kernel: Pick<Kernel, "deleteRule">,
  note: string,
  log: Pick<Log, "info">,
): Promise<void> {
  if (!hadCharon(note)) return;
  const remarks = readNote(note)?.remarks;
  const ended = await endLasting(note);
  for (const pid of ended) log.info("ended charon, left by an earlier configuration", { pid });
  const running = Number.parseInt(readText(PID_FILE), 10);
  if (ended.includes(running)) {
    rmSync(PID_FILE, { force: true });
    rmSync(SOCKET, { force: true });
  }
  if (ended.includes(running) || !isCharon(running)) {
    await removeRule(kernel, { ...RULE, ...remarks }, log);
  }
  removeNote(note);
}

async function removeRule(
  kernel: Pick<Kernel, "deleteRule">,
  rule: RoutingRule,
  log: Pick<Log, "info">,
): Promise<void> {
  // Where it is told to use no table of its own it makes no rule.
  if (rule.table === 0) return;
  const removed = [await kernel.deleteRule(4, rule), await kernel.deleteRule(6, rule)];
  if (removed.includes(true))
    log.info("removed the routing rule of charon, left by an earlier configuration");
}

function isCharon(pid: number): boolean {
  return basename(procLink(pid, "exe") ?? "").startsWith("charon");
}

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
