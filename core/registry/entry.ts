import type { Manifest } from "./manifest.ts";

/**
 * What became of a plugin: `available` could be used; `skipped` is not for this machine; `incompatible` speaks
 * another contract; `invalid` has a broken manifest or no code; `untrusted` could have been written by others than
 * root; `conflict` wants a type that is taken; `failed` broke while it was loaded; `active` is in use.
 */
export type PluginState =
  | "available"
  | "skipped"
  | "incompatible"
  | "invalid"
  | "untrusted"
  | "conflict"
  | "failed"
  | "active";

/** What is wrong with a plugin and what the operator can do about it, each one sentence without full stop. */
export interface Problem {
  readonly what: string;
  readonly fix: string;
}

/** How files of a drop-in are verified. */
export interface Trust {
  /** Plugin root that holds the folder; no file may lie outside after links are followed. */
  readonly root: string;
  /** Files have to belong to uid 0 or to this one. */
  readonly euid: number;
  /** Hex SHA-256 the main file must have, with the file that says so; several may apply. */
  readonly pins: readonly { readonly sha256: string; readonly by: string }[];
}

/** One plugin folder as it was found. */
export interface PluginEntry {
  /** Folder name, which the manifest repeats. */
  readonly name: string;
  /** Types and aliases it serves, lower-case; read as far as possible from a broken manifest. */
  readonly types: readonly string[];
  /** Absolute path of the plugin's folder. */
  readonly folder: string;
  /** Absolute path of the main module; empty without a usable manifest. */
  readonly main: string;
  /** Absent when the manifest cannot be used. */
  readonly manifest?: Manifest;
  /** Absent for built-ins, which are as trusted as the executable that holds them. */
  readonly trust?: Trust;
  readonly state: PluginState;
  /** Present in every state but `available` and `active`. */
  readonly problem?: Problem;
}

/** Problem of an entry as one line, empty when there is none. */
export function reasonOf(entry: PluginEntry): string {
  return entry.problem ? `${entry.problem.what}; ${entry.problem.fix}` : "";
}

/** Where a plugin comes from, for people. */
export function originOf(entry: PluginEntry): string {
  return entry.trust ? entry.folder : "built-in";
}
