import { createLog, type Log } from "../observe/log.ts";
import type { CommandLine } from "./flags.ts";

/** The log of a command that answers and ends: warnings only, on standard error; all of it with `-v=1`. */
export function commandLog({ options }: Pick<CommandLine, "options">): Log {
  const log = createLog({ verbosity: options.verbosity, form: "text" });
  return options.verbosity > 0 ? log : quiet(log);
}

function quiet(log: Log): Log {
  return { ...log, debug() {}, info() {}, child: (fields) => quiet(log.child(fields)) };
}

/** Tells on standard error what is doubtful about the command line, and that this is not root where that matters less. */
export function announce({ warnings }: Pick<CommandLine, "warnings">, uid = process.geteuid?.()): void {
  for (const warning of warnings) process.stderr.write(`flanneld: warning: ${warning}\n`);
  if (uid === undefined || uid === 0) return;
  process.stderr.write(
    `flanneld: warning NOT_ROOT: this is uid ${uid}, not root\n  hint: What only root may read or do here is missing; run it as root for the whole answer.\n`,
  );
}
