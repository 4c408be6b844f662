import { readdirSync, realpathSync, statSync } from "node:fs";
import { join } from "node:path";
import { describeError } from "../observe/fault.ts";
import type { Finding } from "../observe/finding.ts";
import { settleClaims } from "./claims.ts";
import type { Platform } from "./compatibility.ts";
import type { PluginEntry } from "./entry.ts";
import { inspectPlugin, type Judgement } from "./inspect.ts";
import { LOCK_FILE, readLock } from "./lock.ts";
import { Registry } from "./registry.ts";
import type { TrustRule } from "./trust.ts";

/** A folder of plugin folders. */
export interface PluginRoot {
  readonly path: string;
  /** Whether its absence is worth a finding: the operator asked for it. */
  readonly required: boolean;
}

/** The roots of drop-ins in order: what packages install, what the operator installs, `--plugin-dir`s. */
export function pluginRoots(pluginDirs: readonly string[]): readonly PluginRoot[] {
  return [
    { path: "/usr/lib/flannel/plugins", required: false },
    { path: "/etc/flannel/plugins", required: false },
    ...pluginDirs.map((path) => ({ path, required: true })),
  ];
}

export interface DiscoverOptions {
  /** Built-in plugins, trusted as they are; see {@link embeddedRoot}. */
  readonly embeddedRoot: string;
  readonly roots: readonly PluginRoot[];
  /** Names of plugins that may take types away from others (`--allow-override`). */
  readonly allowOverride?: readonly string[];
  /** Whose files are trusted beside root's; default: our effective user. */
  readonly euid?: number;
  readonly platform?: Platform;
}

/**
 * Finds all plugins and judges them by their manifests; no plugin code runs. Nothing a plugin folder contains makes
 * this throw: what is wrong becomes the state of the entry, or a finding of the registry.
 */
export function discoverPlugins(options: DiscoverOptions): Registry {
  const platform = options.platform ?? { os: process.platform, arch: process.arch };
  const euid = options.euid ?? process.geteuid?.() ?? 0;
  const findings: Finding[] = [];
  const entries: PluginEntry[] = listFolders(options.embeddedRoot).map((name) =>
    inspectPlugin(join(options.embeddedRoot, name), name, { platform }),
  );
  const seen = new Set<string>();
  for (const { path, required } of options.roots) {
    try {
      const real = realpathSync(path);
      // A root that is given twice would be in conflict with itself.
      if (seen.has(real)) continue;
      seen.add(real);
      const rule: TrustRule = { root: path, euid };
      const judgement: Judgement = { platform, rule, lock: readLock(rule) };
      entries.push(...listFolders(path).map((name) => inspectPlugin(join(path, name), name, judgement)));
    } catch (error) {
      const missing = (error as NodeJS.ErrnoException).code === "ENOENT";
      if (!missing || required) findings.push(unreadableRoot(path, required, error));
    }
  }
  const claims = settleClaims(entries, options.allowOverride ?? []);
  return new Registry(claims.entries, claims.holders, [...findings, ...claims.findings]);
}

/** Names of the plugin folders in a root, sorted; dotfiles, `*.disabled` and plain files are no plugins. */
function listFolders(root: string): string[] {
  return readdirSync(root)
    .filter((name) => !name.startsWith(".") && !name.endsWith(".disabled") && name !== LOCK_FILE)
    .filter((name) => statSync(join(root, name), { throwIfNoEntry: false })?.isFile() !== true)
    .sort();
}

function unreadableRoot(path: string, required: boolean, error: unknown): Finding {
  return {
    code: "PLUGIN_DIR_UNREADABLE",
    severity: "warning",
    title: "plugin folder cannot be read",
    text: `${path}: ${describeError(error)}`,
    fix: required ? "correct --plugin-dir or create the folder" : "make it a folder that root can read",
  };
}
