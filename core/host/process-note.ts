import { createHmac } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { procLink, procText } from "./proc.ts";

/** What is noted down of a process that outlives its daemon. */
export interface ProcessNote {
  readonly pid: number;
  /** Field 22 of /proc/PID/stat (proc(5)), clock ticks after boot: tells it from a later process with the same id. */
  readonly since: string;
  readonly salt: string;
  /** See {@link hashOf}; of what it was started with. */
  readonly startedWith: string;
  /** What its starter has to say to whoever removes what it leaves. */
  readonly remarks: Readonly<Record<string, number>>;
}

/** Variable in the environment of such a process, and of its children: the file of its note. */
export const NOTE_VARIABLE = "FLANNEL_PROCESS_NOTE";

/** HMAC-SHA-256 in hex: what was hashed cannot be read from it. */
export function hashOf(text: string, salt: string): string {
  return createHmac("sha256", salt).update(text).digest("hex");
}

/** Reads a note; undefined for a file that is none, or is not there. */
export function readNote(path: string): ProcessNote | undefined {
  try {
    const { pid, since, salt, startedWith, remarks } = JSON.parse(readFileSync(path, "utf8")) as Readonly<
      Record<string, unknown>
    >;
    if (typeof pid !== "number" || pid <= 1 || typeof since !== "string") return undefined;
    return {
      pid,
      since,
      salt: typeof salt === "string" ? salt : "",
      startedWith: typeof startedWith === "string" ? startedWith : "",
      remarks: numbersOf(remarks),
    };
  } catch {
    return undefined;
  }
}

/**
 * Processes that were started with a note: the one that it tells of, if it still runs. Where the note tells of none (it
 * is damaged, or its process is gone), those of this network namespace with the name of the note in their environment,
 * without the processes that they started in turn.
 */
export function findNoted(path: string): readonly number[] {
  const note = readNote(path);
  if (note && startOf(note.pid) === note.since) return [note.pid];
  const mark = `\0${NOTE_VARIABLE}=${path}\0`;
  const home = procLink("self", "ns/net");
  return readdirSync("/proc")
    .filter((entry) => /^\d+$/.test(entry) && `\0${procText(entry, "environ")}`.includes(mark))
    .filter((pid) => home !== undefined && procLink(pid, "ns/net") === home)
    .map(Number)
    .filter((pid) => startOf(pid) !== undefined && fieldsOf(pid)[3] === String(pid));
}

/** When a process was started, in clock ticks after boot; undefined for one that has ended, reaped or not. */
export function startOf(pid: number): string | undefined {
  const fields = fieldsOf(pid);
  return ENDED.has(fields[0]) ? undefined : fields[19];
}

/** /proc/PID/stat (proc(5)) from the third field on: state, parent, process group, session, … */
function fieldsOf(pid: number): readonly string[] {
  // The command before them stands in parentheses and may hold anything; these are single words.
  const stat = procText(pid, "stat");
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
}

/** Zombie and dead (proc(5)). */
const ENDED: ReadonlySet<string | undefined> = new Set(["Z", "X", "x"]);

function numbersOf(value: unknown): Readonly<Record<string, number>> {
  if (typeof value !== "object" || value === null) return {};
  return Object.fromEntries(
    Object.entries(value).filter((entry): entry is [string, number] => typeof entry[1] === "number"),
  );
}
