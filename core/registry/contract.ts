import type { Backend, BackendPlugin } from "flannel/sdk";
import { Fault } from "../observe/fault.ts";
import type { Problem } from "./entry.ts";

type Members = Readonly<Record<string, unknown>>;

const FIX = "export default defineBackend({ optionNames, options, configure }), see docs/plugins.md";

/** The plugin a module exports by default, or what keeps it from being one. */
export function checkPlugin(module: unknown): BackendPlugin | Problem {
  const plugin = isObject(module) ? module.default : undefined;
  if (plugin === undefined) return { what: "has no default export", fix: FIX };
  if (!isObject(plugin))
    return { what: `its default export is ${kindOf(plugin)}, not a plugin object`, fix: FIX };
  const mistake =
    findOptionMistake(plugin) ??
    findMissing(plugin, ["configure"]) ??
    (plugin.check === undefined ? undefined : findMissing(plugin, ["check"]));
  if (mistake !== undefined) return { what: `its default export is no plugin: ${mistake}`, fix: FIX };
  return plugin as unknown as BackendPlugin;
}

/**
 * Checks what a plugin's `configure` returned, so that a missing function is told now and not at 3 a.m.
 * @throws Fault `PLUGIN_FAILED` naming the member.
 */
export function checkBackend(value: unknown, pluginName: string): Backend {
  const mistake = isObject(value) ? findBackendMistake(value) : `it is ${kindOf(value)}`;
  if (mistake === undefined) return value as Backend;
  throw new Fault("PLUGIN_FAILED", `plugin "${pluginName}": configure() returned no backend: ${mistake}`, {
    hint: "tell its author; docs/plugins.md describes the kinds of backend",
  });
}

function findOptionMistake(plugin: Members): string | undefined {
  const names = plugin.optionNames;
  if (!Array.isArray(names) || names.some((name) => typeof name !== "string")) {
    return `"optionNames" is ${kindOf(names)}, not a list of texts`;
  }
  const options = plugin.options;
  const standard =
    isObject(options) || typeof options === "function" ? (options as Members)["~standard"] : undefined;
  if (!isObject(standard)) return '"options" is no Standard Schema (it has no "~standard")';
  if (standard.version !== 1) return `"options" speaks Standard Schema ${String(standard.version)}, not 1`;
  return typeof standard.validate === "function"
    ? undefined
    : '"options" has no function "~standard.validate"';
}

const DECLARATIVE = ["links", "publish", "mtu", "own", "peer"];
const ACTIVE = ["prepare", "attach", "sync", "stop", "cleanup"];
const CLOUD = ["publish", "discover", "read", "apply"];

function findBackendMistake(backend: Members): string | undefined {
  if (backend.mode === "declarative") return findMissing(backend, DECLARATIVE);
  if (backend.mode === "active") return findMissing(backend, ACTIVE);
  if (backend.mode === "cloud") return findMissing(backend, CLOUD);
  return `"mode" is ${JSON.stringify(backend.mode)}, not "declarative", "active" or "cloud"`;
}

function findMissing(object: Members, names: readonly string[]): string | undefined {
  const wrong = names.find((name) => typeof object[name] !== "function");
  return wrong === undefined ? undefined : `"${wrong}" is ${kindOf(object[wrong])}, not a function`;
}

function isObject(value: unknown): value is Members {
  return typeof value === "object" && value !== null;
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (value === undefined) return "missing";
  return Array.isArray(value) ? "a list" : `a ${typeof value}`;
}
