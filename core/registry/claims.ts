import type { Finding } from "../observe/finding.ts";
import { originOf, type PluginEntry, type Problem } from "./entry.ts";

/** Who serves what once all claims are settled. */
export interface Claims {
  /** The entries in their order; those that lost are in conflict. */
  readonly entries: readonly PluginEntry[];
  /** Folder of the plugin that serves a type or alias. */
  readonly holders: ReadonlyMap<string, string>;
  /** One for every permission to override that had no effect. */
  readonly findings: readonly Finding[];
}

/**
 * Settles who serves which type. The first usable entry has a type and a name; a later one is a conflict, unless its
 * `overrides` names the first and the operator allows it by its own name.
 */
export function settleClaims(entries: readonly PluginEntry[], allowOverride: readonly string[]): Claims {
  const holders = new Map<string, PluginEntry>();
  const problems = new Map<PluginEntry, Problem>();
  const accepted: PluginEntry[] = [];
  const effective = new Set<string>();
  for (const entry of entries) {
    if (entry.state !== "available") continue;
    const rivals = accepted.filter(
      (other) => other.name === entry.name || entry.types.some((type) => holders.get(type) === other),
    );
    const stronger = rivals.find((rival) => !mayReplace(entry, rival, allowOverride));
    if (stronger) {
      problems.set(entry, refuse(entry, stronger));
      continue;
    }
    for (const type of entry.types) holders.set(type, entry);
    accepted.push(entry);
    if (rivals.length > 0) effective.add(entry.name);
    // A plugin that still serves another type stays in use for that one.
    const serving = new Set(holders.values());
    for (const rival of rivals) if (!serving.has(rival)) problems.set(rival, replacedBy(entry));
  }
  return {
    entries: entries.map((entry): PluginEntry => {
      const problem = problems.get(entry);
      return problem ? { ...entry, state: "conflict", problem } : entry;
    }),
    holders: new Map([...holders].map(([type, entry]) => [type, entry.folder])),
    findings: allowOverride.filter((name) => !effective.has(name)).map(withoutEffect),
  };
}

function mayReplace(entry: PluginEntry, rival: PluginEntry, allowOverride: readonly string[]): boolean {
  return declaresOverride(entry, rival) && allowOverride.includes(entry.name);
}

function declaresOverride(entry: PluginEntry, rival: PluginEntry): boolean {
  return entry.manifest?.overrides.includes(rival.name) === true;
}

function refuse(entry: PluginEntry, rival: PluginEntry): Problem {
  const shared = entry.types.filter((type) => rival.types.includes(type)).map((type) => `"${type}"`);
  const claim = shared.length > 0 ? `backend ${shared.join(", ")}` : `the name "${entry.name}"`;
  return {
    what: `${claim} is already served by plugin "${rival.name}" (${originOf(rival)})`,
    fix: declaresOverride(entry, rival)
      ? `to let it take over, start flanneld with --allow-override ${entry.name}`
      : `remove one of the two, or put "overrides": ["${rival.name}"] into its plugin.json and start flanneld with --allow-override ${entry.name}`,
  };
}

function replacedBy(entry: PluginEntry): Problem {
  return {
    what: `replaced by plugin "${entry.name}" (${originOf(entry)})`,
    fix: `this is what --allow-override ${entry.name} asks for; leave it out to undo it`,
  };
}

function withoutEffect(name: string): Finding {
  return {
    code: "PLUGIN_OVERRIDE_UNUSED",
    severity: "warning",
    title: "permission to override has no effect",
    text: `--allow-override ${name}: no usable plugin "${name}" overrides another one`,
    fix: "correct the name or remove the flag; `flanneld backends` lists the plugins",
  };
}
