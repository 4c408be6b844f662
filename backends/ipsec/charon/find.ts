import { accessSync, constants, statSync } from "node:fs";
import { delimiter, join } from "node:path";

/** Flag of the daemon that names the executable. */
export const FLAG = "charon-executable";

/** Folders that packages put charon into, after those of PATH: Debian, Alpine, Red Hat, and older ones of each. */
const FOLDERS = [
  "/usr/lib/strongswan",
  "/usr/lib/ipsec",
  "/usr/libexec/strongswan",
  "/usr/libexec/ipsec",
] as const;

/** Where charon was looked for, and found. */
export interface Search {
  readonly found?: string;
  readonly places: readonly string[];
}

/** Looks for charon: where the flag says and nowhere else, or in PATH and where packages put it. */
export function findCharon(
  flags: Readonly<Record<string, string>> = {},
  path = process.env.PATH ?? "",
): Search {
  const named = flags[FLAG];
  if (named !== undefined) return { places: [named], ...(isExecutable(named) ? { found: named } : {}) };
  const folders = [...path.split(delimiter).filter((folder) => folder.startsWith("/")), ...FOLDERS];
  const found = folders.map((folder) => join(folder, "charon")).find(isExecutable);
  return { places: ["PATH", ...FOLDERS], ...(found === undefined ? {} : { found }) };
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}
