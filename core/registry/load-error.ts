import { describeError, Fault } from "../observe/fault.ts";
import type { Problem } from "./entry.ts";

/** The way out for a plugin that wants more than it may import. */
export const BUNDLE_IT =
  "bundle the plugin into one file: bun build index.ts --outfile index.js --external flannel/sdk --external valibot";

/** What Bun's BuildMessage and ResolveMessage carry; neither is an Error. */
interface Message {
  readonly name?: unknown;
  readonly message?: unknown;
  readonly stack?: unknown;
  readonly position?: { readonly file?: string; readonly line?: number; readonly column?: number } | null;
}

/**
 * What went wrong while a plugin's module was imported, with file, line and column where they are known. Works on
 * anything thrown, from Bun's parser and resolver to `throw null`.
 */
export function describeLoadError(error: unknown, folder: string): Problem {
  // Several mistakes in one file: the first one is what the others follow from.
  if (error instanceof AggregateError) return describeLoadError(error.errors[0], folder);
  if (error instanceof Fault) return { what: error.message, fix: error.hint };
  const { name, message, position, stack } = (
    typeof error === "object" && error !== null ? error : {}
  ) as Message;
  if (name === "BuildMessage" && position) {
    const at = `${position.file}:${position.line}:${position.column}`;
    return { what: `${at}: ${message}`, fix: "correct the syntax or install the plugin again" };
  }
  if (name === "ResolveMessage") {
    return { what: String(message), fix: BUNDLE_IT };
  }
  const place = typeof stack === "string" ? findPlace(stack, folder) : undefined;
  const thrown = describeThrown(error, name);
  return {
    what: place === undefined ? thrown : `${place}: ${thrown}`,
    fix: "tell its author, or install a version that works; `flanneld backends` lists what else is there",
  };
}

/** The problem of a module that is still loading after its time. */
export function neverLoaded(main: string, timeoutMs: number): Problem {
  return {
    what: `${main} did not finish loading within ${timeoutMs} ms: an endless loop, or a top-level await that never settles`,
    fix: 'ask its author to do nothing while the module loads; if it only is slow, raise "timeouts": {"load": MS} in its plugin.json',
  };
}

function describeThrown(error: unknown, name: unknown): string {
  const text = describeError(error);
  if (!(error instanceof Error)) return `threw ${text}`;
  return typeof name === "string" && name !== "Error" && name !== text ? `${name}: ${text}` : text;
}

/** The first stack frame inside the plugin, as `file:line:column`. */
function findPlace(stack: string, folder: string): string | undefined {
  for (const line of stack.split("\n")) {
    const start = line.indexOf(`${folder}/`);
    const place = start < 0 ? undefined : /^.+?:\d+:\d+/.exec(line.slice(start))?.[0];
    if (place !== undefined) return place;
  }
  return undefined;
}
