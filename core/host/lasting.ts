import { randomBytes } from "node:crypto";
import { readlinkSync, rmSync, statSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { writeFileAtomically } from "./atomic-file.ts";
import type { ChildSpec, Lasting } from "./child-spec.ts";
import { OutputReader, openForProcess } from "./output-fifo.ts";
import { type RunningProcess, startDetached } from "./process.ts";
import { findNoted, hashOf, NOTE_VARIABLE, type ProcessNote, readNote, startOf } from "./process-note.ts";

/** Pause between two looks at a process that is not our child, and at what is printed, ms. */
const LOOK_MS = 250;
/** How long the end of a process is waited for after SIGKILL, ms: it may be busy inside of the kernel. */
const END_MS = 3_000;
const END_LOOK_MS = 10;
/** Root's alone: it is nobody else's business what runs with which settings. */
const MODE = 0o600;

/** A spec with `lasting`. */
export type LastingSpec = ChildSpec & { readonly lasting: Lasting };

/** The FIFO beside a note that carries what the process prints. */
export function outputOf(note: string): string {
  return `${note}.output`;
}

/** Starts a process in a session of its own, and writes its note. Throws the system's error where it cannot. */
export async function startLasting(spec: LastingSpec): Promise<RunningProcess> {
  const { note, remarks = {} } = spec.lasting;
  const output = await openForProcess(outputOf(note));
  // Open before the process is there: what one printed that ends at once is gone with the last who has the FIFO open.
  const reader = readerOf(spec);
  // Whoever cleans up looks for processes where there is a note: it is there before the process is.
  writeFileAtomically(note, "{}\n", MODE);
  const env = { ...spec.env, [NOTE_VARIABLE]: note };
  const child = startDetached(spec.file, { ...spec, env }, output);
  const salt = randomBytes(16).toString("hex");
  const written: ProcessNote = {
    pid: child.pid,
    since: startOf(child.pid) ?? "",
    salt,
    startedWith: hashOf(describe(spec), salt),
    remarks,
  };
  try {
    writeFileAtomically(note, `${JSON.stringify(written)}\n`, MODE);
  } catch (error) {
    // The next one is started without knowing of it.
    kill(written, "SIGKILL");
    reader.close();
    throw error;
  }
  return watch(reader, written, child.ended);
}

/**
 * The process of an earlier daemon, if it was started as the spec says and answers. Else it is killed, and `undefined`
 * returned, as it is when there is none.
 */
export async function adoptLasting(spec: LastingSpec): Promise<RunningProcess | undefined> {
  const { lasting } = spec;
  const [pid] = findNoted(lasting.note);
  if (pid === undefined) return undefined;
  const note = readNote(lasting.note);
  const fits = note?.pid === pid && hashOf(describe(spec), note.salt) === note.startedWith;
  if (!fits || !(await answers(lasting))) {
    await endLasting(lasting.note);
    lasting.replaced?.(pid, fits ? "silent" : "different");
    return undefined;
  }
  const reader = readerOf(spec);
  // What was said to nobody is not news.
  reader.skip();
  return watch(reader, note);
}

/** `kill -KILL` of what was started with a note and still runs; resolves with the ids when they have ended. */
export async function endLasting(note: string): Promise<readonly number[]> {
  const pids = findNoted(note);
  for (const pid of pids) kill({ pid }, "SIGKILL");
  for (const end = performance.now() + END_MS; performance.now() < end; ) {
    if (pids.every((pid) => startOf(pid) === undefined)) break;
    await sleep(END_LOOK_MS);
  }
  return pids;
}

/** `rm NOTE NOTE.output`. */
export function removeNote(note: string): void {
  rmSync(note, { force: true });
  rmSync(outputOf(note), { force: true });
}

function readerOf({ lasting, line = () => {} }: LastingSpec): OutputReader {
  return new OutputReader(outputOf(lasting.note), line);
}

async function answers(lasting: Lasting): Promise<boolean> {
  try {
    return await lasting.answers();
  } catch {
    return false;
  }
}

/** All that a running process has to have in common with one that would be started now. */
function describe({ file, args = [], env = {}, lasting }: LastingSpec): string {
  const { dev, ino, size, mtimeMs } = statSync(file, { throwIfNoEntry: false }) ?? {};
  const home = readlinkSync("/proc/self/ns/net");
  return JSON.stringify([file, dev, ino, size, mtimeMs, args, env, home, lasting.startedWith]);
}

/**
 * Looks after a process: tells what it prints, until it has ended or nobody looks after it any more. How it `exited` is
 * told by the system for children only.
 */
function watch(output: OutputReader, note: ProcessNote, exited?: Promise<string>): RunningProcess {
  const { promise, resolve } = Promise.withResolvers<string>();
  const timer = setInterval(() => {
    output.read();
    if (!exited && startOf(note.pid) !== note.since)
      resolve("ended, for a reason that only its parent was told");
  }, LOOK_MS);
  timer.unref();
  const ended = Promise.race(exited ? [exited, promise] : [promise]).finally(() => {
    clearInterval(timer);
    output.close();
  });
  return { pid: note.pid, ended, kill: (signal) => kill(note, signal), release: () => resolve("released") };
}

function kill(
  { pid, since = startOf(pid) }: Pick<ProcessNote, "pid"> & Partial<ProcessNote>,
  signal: NodeJS.Signals,
): void {
  try {
    if (since !== undefined && startOf(pid) === since) process.kill(pid, signal);
  } catch {
    // It ended meanwhile.
  }
}
