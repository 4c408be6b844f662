import { existsSync } from "node:fs";
import { join } from "node:path";
import * as v from "valibot";
import { Fault } from "../observe/fault.ts";
import type { Problem } from "./entry.ts";
import { readChecked } from "./strict-json.ts";
import { readTrusted, type TrustRule } from "./trust.ts";

/** Name of the optional file in a plugin root that pins its plugins: `{"<name>": "<sha256 of main>"}`. */
export const LOCK_FILE = "plugins.lock.json";

const schema = v.record(
  v.string(),
  v.pipe(v.string("must be text"), v.regex(/^[0-9a-f]{64}$/, "must be 64 lower-case hex digits")),
);

/** What a root's lock file says. A broken one trusts nothing: `problem` then holds for every plugin of the root. */
export interface PluginLock {
  readonly file: string;
  readonly pins: ReadonlyMap<string, string>;
  readonly problem?: Problem;
}

/** Reads the lock file of a root, undefined when there is none. */
export function readLock(rule: TrustRule): PluginLock | undefined {
  const file = join(rule.root, LOCK_FILE);
  if (!existsSync(file)) return undefined;
  const bytes = readTrusted(file, rule);
  if ("what" in bytes) return { file, pins: new Map(), problem: bytes };
  try {
    return {
      file,
      pins: new Map(Object.entries(readChecked(schema, bytes.toString("utf8"), file, "PLUGIN_LOCK"))),
    };
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    return { file, pins: new Map(), problem: { what: error.message, fix: error.hint } };
  }
}
