import type { BackendPlugin } from "flannel/sdk";
import { Fault } from "../observe/fault.ts";
import { checkPlugin } from "./contract.ts";
import { originOf, type PluginEntry, type Problem } from "./entry.ts";
import { describeLoadError, neverLoaded } from "./load-error.ts";

/** Time a module may take to load when the manifest does not say, ms. */
const LOAD_TIMEOUT_MS = 10_000;

/** What stands in for a module that did not load in time. */
const LATE = Symbol("late");

/**
 * Imports a plugin's main module and checks that it is one. A drop-in is tried out in a worker first, where code
 * that never comes back can be ended, and imported from the bytes that were verified.
 * @throws Fault `PLUGIN_FAILED` or `PLUGIN_UNTRUSTED`.
 */
export async function loadPlugin(
  entry: PluginEntry,
  options: { readonly timeoutMs?: number } = {},
): Promise<BackendPlugin> {
  let { main, folder } = entry;
  const timeoutMs = options.timeoutMs ?? entry.manifest?.timeouts.load ?? LOAD_TIMEOUT_MS;
  if (entry.trust) {
    // Lazily: only drop-ins need the modules they are served and the worker.
    const { verifyDropIn, serveDropIn } = await import("./drop-in.ts");
    const { tryInWorker } = await import("./try-in-worker.ts");
    const dropIn = verifyDropIn(entry.main, entry.folder, entry.trust);
    if ("what" in dropIn) throw fail(entry, dropIn, "PLUGIN_UNTRUSTED");
    const problem = await tryInWorker(dropIn, timeoutMs);
    if (problem) throw fail(entry, problem);
    serveDropIn(dropIn);
    ({ main, folder } = dropIn);
  }
  let module: unknown;
  try {
    module = await within(timeoutMs, import(main));
  } catch (error) {
    throw fail(entry, describeLoadError(error, folder), "PLUGIN_FAILED", error);
  }
  if (module === LATE) throw fail(entry, neverLoaded(main, timeoutMs));
  const plugin = checkPlugin(module);
  if ("what" in plugin) throw fail(entry, { ...plugin, what: `${main}: ${plugin.what}` });
  return plugin;
}

async function within(timeoutMs: number, work: Promise<unknown>): Promise<unknown> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise((resolve) => {
    timer = setTimeout(resolve, timeoutMs, LATE);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

function fail(entry: PluginEntry, { what, fix }: Problem, code = "PLUGIN_FAILED", cause?: unknown): Fault {
  const message = `plugin "${entry.name}" (${originOf(entry)}) cannot be loaded: ${what}`;
  return new Fault(code, message, { hint: fix, ...(cause === undefined ? {} : { cause }) });
}
