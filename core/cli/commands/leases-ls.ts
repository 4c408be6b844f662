import { type AuditedLease, auditLeases } from "../../lease/audit.ts";
import { describeSubnets } from "../../lease/key.ts";
import { announce, commandLog } from "../command-log.ts";
import type { CommandLine } from "../flags.ts";
import { type ConfigState, rangesOf, readConfigState, withLeases } from "../lease-access.ts";
import { renderSeconds } from "../pairs.ts";
import { renderTable } from "../table.ts";
import type { Answered } from "./status.ts";

/** What `flanneld leases ls -o json` prints. */
export interface LeaseList {
  readonly config: ConfigState["state"];
  readonly leases: readonly AuditedLease[];
}

/**
 * `flanneld leases ls [-o json]`: every key below `subnets/`. Exit code 0 when all are in order, 1 when something is
 * wrong with one.
 * @throws Fault `ETCD_…`.
 */
export async function listLeases(line: CommandLine): Promise<Answered> {
  announce(line);
  const list = await withLeases(
    line.options,
    commandLog(line),
    async (manager, signal): Promise<LeaseList> => {
      const [config, inventory] = await Promise.all([
        readConfigState(manager, signal),
        manager.inventory(signal),
      ]);
      return { config: config.state, leases: auditLeases(inventory, rangesOf(config)) };
    },
  );
  const text = line.output === "json" ? `${JSON.stringify(list, null, 2)}\n` : renderLeases(list);
  return { text, code: list.leases.some(({ problems }) => problems.length > 0) ? 1 : 0 };
}

/** The list for people. */
export function renderLeases({ config, leases }: LeaseList): string {
  const note =
    config === "valid" ? "" : `The network config is ${config}: which subnets are legal was not looked at.\n`;
  if (leases.length === 0) return `No node has a lease.\n${note}`;
  const rows = leases.map((lease) => [
    describeSubnets(lease.subnets) || JSON.stringify(lease.key),
    ownerOf(lease),
    lease.attrs?.nodeId ?? "-",
    lease.attrs?.backendType || "-",
    renderTime(lease.ageSeconds),
    lease.kind === "reservation" ? "never" : renderTime(lease.ttlSeconds),
    notesOf(lease),
  ]);
  return renderTable(["SUBNET", "OWNER", "NODE", "BACKEND", "AGE", "TTL", "NOTE"], rows) + note;
}

function ownerOf({ attrs }: AuditedLease): string {
  return [attrs?.publicIP, attrs?.publicIPv6].filter((each) => each !== undefined).join(" ") || "-";
}

function renderTime(seconds: number | undefined): string {
  return seconds === undefined ? "-" : renderSeconds(seconds);
}

function notesOf({ kind, problems }: AuditedLease): string {
  const notes = [
    ...(kind === "reservation" ? ["reservation"] : []),
    ...problems.map(({ code, text }) => `${code.replace("-", " ")}: ${text}`),
  ];
  return notes.join("; ") || "-";
}
