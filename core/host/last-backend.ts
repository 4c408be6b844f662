import { readFileSync, rmSync } from "node:fs";
import { writeFileAtomically } from "./atomic-file.ts";

/** A type as a network config names it; nothing else is taken from the file. */
const TYPE = /^[\w.-]{1,64}$/;

/** The file that names the backend of the last run, where it made things that core cannot find by itself. */
export function lastBackendFile(subnetFile: string): string {
  return `${subnetFile}.backend`;
}

/**
 * Remembers a backend that makes things core cannot find by itself (routes in a cloud, what commands do), so that
 * `cleanup` knows of it without the network config; forgets it for undefined. Failure is ignored.
 */
export function rememberBackend(subnetFile: string, type: string | undefined): void {
  const file = lastBackendFile(subnetFile);
  if (type === readLastBackend(subnetFile)) return;
  try {
    if (type === undefined) rmSync(file, { force: true });
    else writeFileAtomically(file, `${type}\n`);
  } catch {
    // It only makes an answer of `cleanup` more exact.
  }
}

/** What `rememberBackend` has noted; undefined where it noted nothing, or nobody can tell. */
export function readLastBackend(subnetFile: string): string | undefined {
  try {
    const text = readFileSync(lastBackendFile(subnetFile), "utf8").trim();
    return TYPE.test(text) ? text : undefined;
  } catch {
    return undefined;
  }
}
