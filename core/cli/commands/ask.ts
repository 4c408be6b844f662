import { Fault } from "../../observe/fault.ts";
import { askDaemon } from "../../observe/status-client.ts";
import type { CommandLine } from "../flags.ts";

/**
 * Asks the daemon of `-subnet-file`. The socket is root's, so anybody else is told so instead of that nothing runs.
 * @throws Fault `PRIVILEGE_MISSING`, and as {@link askDaemon}.
 */
export function ask(
  { options }: CommandLine,
  command: string,
  path: string,
  search: Readonly<Record<string, string>> = {},
): Promise<unknown> {
  requireRoot(command);
  return askDaemon(options.subnetFile, path, search);
}

/** Throws Fault `PRIVILEGE_MISSING` unless this process is root's. */
export function requireRoot(command: string, uid = process.geteuid?.()): void {
  if (uid === undefined || uid === 0) return;
  throw new Fault("PRIVILEGE_MISSING", `flanneld ${command} needs root, and this is uid ${uid}`, {
    hint: `Run it as root: sudo flanneld ${command}`,
  });
}
