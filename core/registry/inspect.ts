import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { MAX_JSON_BYTES } from "../config/json.ts";
import { Fault } from "../observe/fault.ts";
import { findApiProblem, findPlatformProblem, type Platform } from "./compatibility.ts";
import type { PluginEntry, PluginState, Problem } from "./entry.ts";
import type { PluginLock } from "./lock.ts";
import {
  MANIFEST_FILE,
  MANIFEST_SCHEMA,
  type Manifest,
  manifestReason,
  readClaims,
  readManifest,
} from "./manifest.ts";
import { collectPins, findHashProblem, findLockProblem } from "./pins.ts";
import { readTrusted, type TrustRule } from "./trust.ts";

/** What a plugin folder is judged by. */
export interface Judgement {
  readonly platform: Platform;
  /** Absent for built-ins. */
  readonly rule?: TrustRule;
  readonly lock?: PluginLock | undefined;
}

/** What is known of a plugin before its manifest can be used. */
type Outline = Pick<PluginEntry, "name" | "folder" | "types" | "main" | "trust">;

/** Judges the plugin in `folder` by its manifest and files; none of its code runs. Throws nothing. */
export function inspectPlugin(folder: string, name: string, judgement: Judgement): PluginEntry {
  const { rule } = judgement;
  const outline: Outline = {
    name,
    folder,
    types: [name],
    main: "",
    ...(rule ? { trust: { ...rule, pins: [] } } : {}),
  };
  const file = join(folder, MANIFEST_FILE);
  if (!existsSync(file)) {
    const problem = {
      what: `${file} does not exist`,
      fix: `add it, or rename the folder to ${name}.disabled`,
    };
    return { ...outline, state: "invalid", problem };
  }
  const bytes = rule ? readTrusted(file, rule) : readFileSync(file);
  if ("what" in bytes)
    return { ...outline, types: readTypes(file, name), state: "untrusted", problem: bytes };
  const text = bytes.toString("utf8");
  try {
    return judgeManifest(outline, readManifest(text, file), judgement);
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    return judgeBroken(outline, text, file, error);
  }
}

/** The types an untrusted manifest is about, so that the one who wants such a type is told of it. */
function readTypes(file: string, name: string): readonly string[] {
  const stats = statSync(file, { throwIfNoEntry: false });
  // Anything but a plain file of sane size could block or flood the reader.
  if (!stats?.isFile() || stats.size > MAX_JSON_BYTES) return [name];
  const { types } = readClaims(readFileSync(file, "utf8"));
  return types.length > 0 ? types : [name];
}

/** A manifest that cannot be read may still tell which types it is about, and that it is of another time. */
function judgeBroken(outline: Outline, text: string, file: string, fault: Fault): PluginEntry {
  const claims = readClaims(text);
  const shared = { ...outline, types: claims.types.length > 0 ? claims.types : outline.types };
  if (claims.schema === undefined || claims.schema === MANIFEST_SCHEMA) {
    return { ...shared, state: "invalid", problem: { what: manifestReason(fault), fix: fault.hint } };
  }
  const problem = {
    what: `${file}: key "schema": manifest schema ${claims.schema}, this flanneld reads ${MANIFEST_SCHEMA}`,
    fix: `install a version of "${outline.name}" with manifest schema ${MANIFEST_SCHEMA}`,
  };
  return { ...shared, state: "incompatible", problem };
}

/** Finds the first thing that keeps a plugin with a readable manifest from being used. */
function judgeManifest(
  outline: Outline,
  manifest: Manifest,
  { platform, rule, lock }: Judgement,
): PluginEntry {
  const { name, folder } = outline;
  const main = findMain(join(folder, manifest.main), rule === undefined);
  const pins = collectPins(name, manifest, lock);
  const types = [...new Set(manifest.backends.flatMap(({ type, aliases }) => [type, ...aliases]))];
  const entry = { ...outline, types, main, manifest, ...(rule ? { trust: { ...rule, pins } } : {}) };
  const stop = (state: PluginState, problem: Problem): PluginEntry => ({ ...entry, state, problem });

  if (manifest.name !== name) {
    const what = `${join(folder, MANIFEST_FILE)}: key "name": "${manifest.name}" differs from the folder's name "${name}"`;
    return stop("invalid", { what, fix: `rename the folder or put "name": "${name}"` });
  }
  const api = findApiProblem(manifest);
  if (api) return stop("incompatible", api);
  const foreign = findPlatformProblem(manifest, platform);
  if (foreign) return stop("skipped", foreign);
  if (!existsSync(main)) {
    const what = `${main} does not exist, but key "main" of ${MANIFEST_FILE} names it`;
    return stop("invalid", { what, fix: 'put the file there or correct "main"' });
  }
  if (rule) {
    const bytes = readTrusted(main, rule);
    if ("what" in bytes) return stop("untrusted", bytes);
    const problem = findLockProblem(name, main, lock) ?? findHashProblem(main, bytes, pins);
    if (problem) return stop("untrusted", problem);
  }
  return { ...entry, state: "available" };
}

/** The main module; the bundler has turned a built-in's `.ts` into `.js`. */
function findMain(main: string, builtIn: boolean): string {
  return builtIn && !existsSync(main) ? main.replace(/\.(m?)ts$/, ".$1js") : main;
}
