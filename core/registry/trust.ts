import { closeSync, fstatSync, lstatSync, openSync, readFileSync, realpathSync, type Stats } from "node:fs";
import { dirname } from "node:path";
import { describeError } from "../observe/fault.ts";
import type { Problem } from "./entry.ts";
import { shellQuote } from "./shell-quote.ts";

/** Write permission of the group and of others (S_IWGRP | S_IWOTH, stat.h). */
const WRITABLE_BY_OTHERS = 0o022;

/** Whose files are trusted, and the folder they have to lie in. */
export interface TrustRule {
  readonly root: string;
  /** Files have to belong to uid 0 or to this one. */
  readonly euid: number;
}

/**
 * Why a file or folder cannot be trusted, undefined when it can: it and every folder above it up to the root belong
 * to root (or to us), nobody else may write to them, it is a regular file or a folder, and it lies inside the root
 * once links are followed. The fix is the exact command to run.
 */
export function findDistrust(path: string, rule: TrustRule): Problem | undefined {
  let real: string;
  let root: string;
  try {
    root = realpathSync(rule.root);
    real = realpathSync(path);
  } catch (error) {
    return unreadable(path, error);
  }
  if (!isInside(real, root)) {
    return {
      what: `${path} leads out of the plugin root ${rule.root}, to ${real}`,
      fix: `put a copy in its place: cp --remove-destination ${shellQuote(real)} ${shellQuote(path)}`,
    };
  }
  for (let at = real; ; at = dirname(at)) {
    const problem = inspect(at, rule.euid);
    if (problem) return problem;
    if (at === root) return undefined;
  }
}

/**
 * Reads a trusted file once: the bytes are those of the file whose owner and mode were looked at.
 * Returns the problem instead when the file cannot be trusted or read.
 */
export function readTrusted(path: string, rule: TrustRule): Buffer | Problem {
  const problem = findDistrust(path, rule);
  if (problem) return problem;
  try {
    const descriptor = openSync(path, "r");
    try {
      return judge(path, fstatSync(descriptor), rule.euid, false) ?? readFileSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
  } catch (error) {
    return unreadable(path, error);
  }
}

/** Whether a real path is the folder itself or lies below it. */
export function isInside(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith("/") ? folder : `${folder}/`);
}

function inspect(path: string, euid: number): Problem | undefined {
  try {
    return judge(path, lstatSync(path), euid, true);
  } catch (error) {
    return unreadable(path, error);
  }
}

function judge(path: string, stats: Stats, euid: number, folderAllowed: boolean): Problem | undefined {
  if (!stats.isFile() && !(folderAllowed && stats.isDirectory())) {
    return { what: `${path} is not a regular file`, fix: "put a regular file there" };
  }
  if (stats.uid !== 0 && stats.uid !== euid) {
    return {
      what: `${path} belongs to uid ${stats.uid}, not to root`,
      fix: `if you trust it, run: chown root: ${shellQuote(path)}`,
    };
  }
  if ((stats.mode & WRITABLE_BY_OTHERS) !== 0) {
    return {
      what: `${path} can be written by others than its owner (mode ${(stats.mode & 0o7777).toString(8).padStart(4, "0")})`,
      fix: `check its content, then run: chmod go-w ${shellQuote(path)}`,
    };
  }
  return undefined;
}

function unreadable(path: string, error: unknown): Problem {
  return {
    what: `${path} cannot be read: ${describeError(error)}`,
    fix: "make it readable for root or restore it",
  };
}
