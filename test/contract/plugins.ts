import { readdirSync } from "node:fs";
import { basename, join } from "node:path";
import type { Backend, BackendPlugin, ConfigureInput, DeclarativeBackend, Families } from "flannel/sdk";
import { inspectPlugin } from "../../core/registry/inspect.ts";
import { loadPlugin } from "../../core/registry/load.ts";
import type { Manifest } from "../../core/registry/manifest.ts";
import { optionSamples } from "./samples.ts";

const ROOT = join(import.meta.dir, "../..");

/** Every plugin that has to keep the contract: all built-ins, the template, and a fixture that is active. */
export const FOLDERS: readonly string[] = [
  ...readdirSync(join(ROOT, "backends"), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => join(ROOT, "backends", entry.name)),
  join(ROOT, "plugins/template"),
  join(import.meta.dir, "commands"),
];

/** A plugin as the daemon would load it. */
export interface Subject {
  readonly name: string;
  readonly folder: string;
  readonly manifest: Manifest;
  readonly plugin: BackendPlugin;
}

/** Loads the plugin of a folder the way the registry does; throws when the registry would not use it. */
export async function loadSubject(folder: string): Promise<Subject> {
  const name = basename(folder);
  const entry = inspectPlugin(folder, name, { platform: { os: process.platform, arch: process.arch } });
  if (entry.state !== "available" || !entry.manifest)
    throw new Error(`${name}: ${entry.state}: ${entry.problem?.what}`);
  return { name, folder, manifest: entry.manifest, plugin: await loadPlugin(entry) };
}

/** One way to run a plugin: families and options. */
export interface Setting {
  readonly label: string;
  readonly subject: Subject;
  readonly families: Families;
  readonly raw: Readonly<Record<string, unknown>>;
}

const STACKS: readonly (readonly [string, Families])[] = [
  ["IPv4", { ipv4: true, ipv6: false }],
  ["IPv6", { ipv4: false, ipv6: true }],
  ["dual stack", { ipv4: true, ipv6: true }],
];

/** All plugins in all families they serve, with each of their sample options. */
export const SETTINGS: readonly Setting[] = (await Promise.all(FOLDERS.map(loadSubject))).flatMap((subject) =>
  STACKS.filter(([, families]) => serves(subject.manifest, families)).flatMap(([stack, families]) =>
    optionSamples(subject.name).map((raw) => ({
      label: `${subject.name}, ${stack}, ${JSON.stringify(raw)}`,
      subject,
      families,
      raw,
    })),
  ),
);

function serves({ backends }: Manifest, { ipv4, ipv6 }: Families): boolean {
  const families = backends[0]?.families ?? [];
  return (!ipv4 || families.includes("ipv4")) && (!ipv6 || families.includes("ipv6"));
}

/** What a plugin is configured with on one node. */
export async function configureInput(
  { subject, families, raw }: Setting,
  nodeId = "node-1",
): Promise<ConfigureInput<unknown>> {
  const result = await subject.plugin.options["~standard"].validate(raw);
  if (result.issues)
    throw new Error(`${subject.name}: ${result.issues.map((issue) => issue.message).join("; ")}`);
  const networks = {
    ...(families.ipv4 ? { ipv4: "10.5.0.0/16" } : {}),
    ...(families.ipv6 ? { ipv6: "fd00:5::/32" } : {}),
  };
  return { options: result.value, families, networks, nodeId };
}

/** The backend of one node. */
export async function configure(setting: Setting, nodeId?: string): Promise<Backend> {
  return setting.subject.plugin.configure(await configureInput(setting, nodeId));
}

/** As {@link configure}, for a plugin that is known to be declarative. */
export async function configureDeclarative(setting: Setting, nodeId?: string): Promise<DeclarativeBackend> {
  const backend = await configure(setting, nodeId);
  if (backend.mode !== "declarative") throw new Error(`${setting.subject.name} is not declarative`);
  return backend;
}

/** The settings of declarative plugins, and of active ones, for `test.each`. */
export const BY_MODE = Object.groupBy(
  await Promise.all(
    SETTINGS.map(async (setting) => ({
      setting,
      mode: (await configure(setting)).mode,
      label: setting.label,
    })),
  ),
  ({ mode }) => mode,
);

/** One setting per plugin and families: enough where the kernel does the work. */
export function onePerStack(labelled: readonly { readonly label: string; readonly setting: Setting }[] = []) {
  const seen = new Set<string>();
  return labelled
    .filter(({ setting: { subject, families } }) => {
      const key = `${subject.name} ${families.ipv4} ${families.ipv6}`;
      return !seen.has(key) && seen.add(key);
    })
    .map(({ label, setting }) => [label, setting] as const);
}
