import { createHash } from "node:crypto";
import type { Problem, Trust } from "./entry.ts";
import { LOCK_FILE, type PluginLock } from "./lock.ts";
import type { Manifest } from "./manifest.ts";

/** The hashes that apply to a plugin's main file. */
export function collectPins(name: string, manifest: Manifest, lock: PluginLock | undefined): Trust["pins"] {
  const locked = lock?.pins.get(name);
  return [
    ...(lock === undefined || locked === undefined ? [] : [{ sha256: locked, by: lock.file }]),
    ...(manifest.sha256 === undefined ? [] : [{ sha256: manifest.sha256, by: "plugin.json" }]),
  ];
}

/** Why a lock file keeps a plugin out, undefined when it does not. */
export function findLockProblem(
  name: string,
  main: string,
  lock: PluginLock | undefined,
): Problem | undefined {
  if (lock === undefined) return undefined;
  if (lock.problem) return lock.problem;
  if (lock.pins.has(name)) return undefined;
  return {
    what: `"${name}" is not listed in ${lock.file}`,
    fix: `once you have checked it, add "${name}": "<the output of sha256sum ${main}>"`,
  };
}

/** Why bytes are not those that were pinned, undefined when they are. */
export function findHashProblem(main: string, bytes: Buffer, pins: Trust["pins"]): Problem | undefined {
  if (pins.length === 0) return undefined;
  const found = createHash("sha256").update(bytes).digest("hex");
  const broken = pins.find((pin) => pin.sha256 !== found);
  if (!broken) return undefined;
  return {
    what: `${main} has SHA-256 ${found}, ${broken.by} wants ${broken.sha256}`,
    fix: broken.by.endsWith(LOCK_FILE)
      ? "restore the file, or put the new hash there once you have checked it"
      : "install the plugin again: the file was changed or copied in part",
  };
}
