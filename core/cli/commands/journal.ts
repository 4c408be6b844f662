import type { JournalEntry } from "../../agent/journal.ts";
import { escapeControls } from "../../observe/printable.ts";
import type { CommandLine } from "../flags.ts";
import { ask } from "./ask.ts";
import type { Answered } from "./status.ts";

/** `flanneld journal [-o json]`: the last events of the daemon, oldest first. Exit code 0. */
export async function showJournal(line: CommandLine): Promise<Answered> {
  const { entries } = (await ask(line, "journal", "/journal")) as { entries: readonly JournalEntry[] };
  if (line.output === "text") return { text: renderEntries(entries), code: 0 };
  const dated = entries.map((entry) => ({ ...entry, at: new Date(entry.at).toISOString() }));
  return { text: `${JSON.stringify({ entries: dated }, null, 2)}\n`, code: 0 };
}

/** One line per entry: time (UTC), kind, text. */
export function renderEntries(entries: readonly JournalEntry[]): string {
  const width = Math.max(0, ...entries.map(({ kind }) => kind.length));
  return entries
    .map(
      ({ at, kind, text }) =>
        `${new Date(at).toISOString()}  ${kind.padEnd(width)}  ${escapeControls(text)}\n`,
    )
    .join("");
}
