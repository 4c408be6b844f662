import type { BackendPlugin } from "flannel/sdk";
import { nearestName } from "../config/nearest.ts";
import { Fault } from "../observe/fault.ts";
import type { Finding } from "../observe/finding.ts";
import { originOf, type PluginEntry, type PluginState, reasonOf } from "./entry.ts";
import { loadPlugin } from "./load.ts";
import type { Manifest } from "./manifest.ts";

/** One line of `flanneld backends`. */
export interface BackendRow {
  readonly type: string;
  readonly aliases: readonly string[];
  readonly plugin: string;
  /** Empty when the manifest does not tell. */
  readonly version: string;
  /** `built-in` or the plugin's folder. */
  readonly from: string;
  readonly status: PluginState;
  /** What is wrong and what to do, empty when nothing is. */
  readonly reason: string;
}

/** A plugin in use. */
export interface LoadedPlugin {
  readonly entry: PluginEntry;
  readonly manifest: Manifest;
  readonly plugin: BackendPlugin;
}

/** States in which a drop-in deserves the operator's attention even when nothing selects it. */
const BROKEN: readonly PluginState[] = ["incompatible", "invalid", "untrusted", "conflict", "failed"];

/** The plugins of this machine and what became of them. */
export class Registry {
  #entries: readonly PluginEntry[];
  readonly #holders: ReadonlyMap<string, string>;
  readonly #findings: readonly Finding[];

  /** `holders` maps types and aliases to the folder of the plugin that serves them. */
  constructor(
    entries: readonly PluginEntry[],
    holders: ReadonlyMap<string, string>,
    findings: readonly Finding[],
  ) {
    this.#entries = entries;
    this.#holders = holders;
    this.#findings = findings;
  }

  /** All plugins, built-ins first, then root by root. */
  get entries(): readonly PluginEntry[] {
    return this.#entries;
  }

  /** What the operator should look at; none of it keeps the daemon from running. */
  get findings(): readonly Finding[] {
    const broken = this.#entries.filter((entry) => entry.trust && BROKEN.includes(entry.state));
    return [...this.#findings, ...broken.map(toFinding)];
  }

  /** Lines for `flanneld backends`, one per backend type. */
  get rows(): readonly BackendRow[] {
    return this.#entries.flatMap((entry) => {
      const shared = {
        plugin: entry.name,
        version: entry.manifest?.version ?? "",
        from: originOf(entry),
        status: entry.state,
        reason: reasonOf(entry),
      };
      const backends = entry.manifest?.backends ?? entry.types.map((type) => ({ type, aliases: [] }));
      return backends.map(({ type, aliases }) => ({ type, aliases, ...shared }));
    });
  }

  /**
   * The plugin that serves a backend type (or alias, in any case).
   * @throws Fault `BACKEND_UNKNOWN` naming the known types, or `PLUGIN_<STATE>` with the reason when the only
   * plugins that serve it cannot be used.
   */
  select(type: string): PluginEntry {
    const wanted = type.toLowerCase();
    const folder = this.#holders.get(wanted);
    const entry = folder === undefined ? undefined : this.#entries.find((each) => each.folder === folder);
    if (entry && (entry.state === "available" || entry.state === "active")) return entry;
    const broken = entry ?? this.#entries.find((each) => each.types.includes(wanted));
    if (broken) throw toFault(type, broken);
    throw this.#unknown(type);
  }

  /**
   * Loads the plugin that serves a backend type; afterwards it is `active`, or `failed` with the reason.
   * @throws Fault as {@link select}, or `PLUGIN_UNTRUSTED`, `PLUGIN_FAILED` when its code cannot be used.
   */
  async load(type: string): Promise<LoadedPlugin> {
    const entry = this.select(type);
    try {
      const plugin = await loadPlugin(entry);
      if (!entry.manifest) throw new Fault("PLUGIN_INVALID", `plugin "${entry.name}" has no manifest`);
      return { entry: this.#change(entry, { state: "active" }), manifest: entry.manifest, plugin };
    } catch (error) {
      if (error instanceof Fault) {
        const state = error.code === "PLUGIN_UNTRUSTED" ? "untrusted" : "failed";
        this.#change(entry, { state, problem: { what: error.message, fix: error.hint } });
      }
      throw error;
    }
  }

  #change(entry: PluginEntry, change: Pick<PluginEntry, "state" | "problem">): PluginEntry {
    const changed = { ...entry, ...change };
    this.#entries = this.#entries.map((each) => (each.folder === entry.folder ? changed : each));
    return changed;
  }

  #unknown(type: string): Fault {
    const known = [...this.#holders.keys()].sort();
    const nearest = nearestName(type, known);
    const list = `known here: ${known.join(", ")}`;
    return new Fault("BACKEND_UNKNOWN", `Backend.Type "${type}" is served by no plugin`, {
      hint: `${nearest === undefined ? "" : `Did you mean "${nearest}"? `}${list}; see \`flanneld backends\`.`,
    });
  }
}

function toFinding(entry: PluginEntry): Finding {
  return {
    code: `PLUGIN_${entry.state.toUpperCase()}`,
    severity: "warning",
    title: `plugin "${entry.name}" is ${entry.state}`,
    text: entry.problem?.what ?? "",
    fix: entry.problem?.fix ?? "",
  };
}

function toFault(type: string, entry: PluginEntry): Fault {
  const plugin = `plugin "${entry.name}" (${originOf(entry)})`;
  return new Fault(
    `PLUGIN_${entry.state.toUpperCase()}`,
    `Backend.Type "${type}" is served by ${plugin}, which is ${entry.state}: ${entry.problem?.what ?? ""}`,
    { hint: entry.problem?.fix ?? "" },
  );
}
