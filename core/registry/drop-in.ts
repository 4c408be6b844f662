import { realpathSync } from "node:fs";
import { isBuiltin } from "node:module";
import { dirname, extname, resolve } from "node:path";
import { type OnLoadResult, plugin, Transpiler } from "bun";
import * as sdk from "flannel/sdk";
import * as valibot from "valibot";
import { Fault } from "../observe/fault.ts";
import type { Problem, Trust } from "./entry.ts";
import { BUNDLE_IT } from "./load-error.ts";
import { findHashProblem } from "./pins.ts";
import { isInside, readTrusted } from "./trust.ts";

/** A drop-in whose main file was verified; plain data, so that it can be handed to a worker. */
export interface DropIn {
  /** Real path of the main module: what to import. */
  readonly main: string;
  /** The bytes that were verified. */
  readonly source: Uint8Array;
  /** Real path of the plugin's folder. */
  readonly folder: string;
  readonly trust: Trust;
}

/** Reads the main file of a drop-in once, checks its trust and hashes; returns the problem when there is one. */
export function verifyDropIn(main: string, folder: string, trust: Trust): DropIn | Problem {
  const source = readTrusted(main, trust);
  if ("what" in source) return source;
  const problem = findHashProblem(main, source, trust.pins);
  if (problem) return problem;
  return { main: realpathSync(main), source: new Uint8Array(source), folder: realpathSync(folder), trust };
}

/**
 * From now on imports from the drop-in's folder get verified bytes: the main module those of `dropIn`, any other
 * file what is read and checked at that moment. Paths in errors stay the real ones. Per thread.
 */
export function serveDropIn(dropIn: DropIn): void {
  provideModules();
  plugin({
    name: `drop-in ${dropIn.folder}`,
    setup(build) {
      // A link may have led the main module elsewhere in the root.
      const [folder, main] = [RegExp.escape(dropIn.folder), RegExp.escape(dropIn.main)];
      const filter = new RegExp(`^(?:${folder}/|${main}$)`);
      build.onLoad({ filter }, ({ path }) => loadFile(path, dropIn));
    },
  });
}

/** What a drop-in may import besides Bun's own modules and files of its folder. */
const PROVIDED: readonly string[] = ["flannel/sdk", "valibot"];

let provided = false;

/** Makes `flannel/sdk` and `valibot` importable for drop-ins: the very modules that core uses. */
function provideModules(): void {
  if (provided) return;
  provided = true;
  plugin({
    name: "plugin contract",
    setup(build) {
      build.module("flannel/sdk", () => ({ exports: { ...sdk }, loader: "object" }));
      build.module("valibot", () => ({ exports: { ...valibot }, loader: "object" }));
    },
  });
}

/** Loaders of the files a drop-in may import; Bun's runtime hook has none for text, WebAssembly and CommonJS. */
const LOADERS: Readonly<Record<string, "ts" | "js" | "json">> = {
  ".ts": "ts",
  ".mts": "ts",
  ".js": "js",
  ".mjs": "js",
  ".json": "json",
};

function loadFile(path: string, dropIn: DropIn): OnLoadResult {
  const loader = LOADERS[extname(path)];
  if (loader === undefined) {
    throw refuse(`${path} is imported, but only .ts, .mts, .js, .mjs and .json can be`, BUNDLE_IT);
  }
  const bytes = path === dropIn.main ? dropIn.source : readOther(path, dropIn.trust);
  const contents = new TextDecoder().decode(bytes);
  if (loader === "json") return { exports: { default: JSON.parse(contents) }, loader: "object" };
  refuseStrayImports(path, contents, loader, dropIn);
  return { contents, loader };
}

function readOther(path: string, trust: Trust): Uint8Array {
  const bytes = readTrusted(path, trust);
  if (!("what" in bytes)) return bytes;
  throw new Fault("PLUGIN_UNTRUSTED", bytes.what, { hint: bytes.fix });
}

/** Packages, and files outside the plugin's folder, are not verified, and a hash covers the main file alone. */
function refuseStrayImports(
  path: string,
  contents: string,
  loader: "ts" | "js",
  { folder, trust }: DropIn,
): void {
  for (const specifier of scanImports(contents, loader)) {
    if (PROVIDED.includes(specifier) || isBuiltin(specifier)) continue;
    if (!specifier.startsWith(".") && !specifier.startsWith("/")) {
      throw refuse(`${path} imports the package "${specifier}", which flanneld does not provide`, BUNDLE_IT);
    }
    if (!isInside(resolve(dirname(path), specifier), folder)) {
      throw refuse(`${path} imports "${specifier}" from outside its folder`, BUNDLE_IT);
    }
    if (trust.pins.length > 0) {
      const what = `${path} is pinned by a hash, which does not cover "${specifier}" that it imports`;
      throw refuse(what, BUNDLE_IT);
    }
  }
}

/** Import specifiers of a module; none for one that does not parse, which the import itself will tell. */
function scanImports(contents: string, loader: "ts" | "js"): readonly string[] {
  try {
    return new Transpiler({ loader }).scanImports(contents).map(({ path }) => path);
  } catch {
    return [];
  }
}

function refuse(what: string, fix: string): Fault {
  return new Fault("PLUGIN_FAILED", what, { hint: fix });
}
