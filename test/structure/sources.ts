import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";

export const repository = resolve(import.meta.dir, "../..");

/** Folders that hold nothing of ours: what others wrote, and what is built. */
const FOREIGN = new Set([".git", "node_modules", "dist/bin"]);

/** Paths of all files below a folder of the repository, relative to its root, sorted; links are not followed. */
export function listFiles(folder = ""): string[] {
  const found: string[] = [];
  const visit = (at: string): void => {
    for (const entry of readdirSync(join(repository, at), { withFileTypes: true })) {
      const path = at === "" ? entry.name : `${at}/${entry.name}`;
      if (FOREIGN.has(entry.name) || FOREIGN.has(path)) continue;
      if (entry.isDirectory()) visit(path);
      // The bundler's work in progress.
      else if (!entry.name.endsWith(".bun-build")) found.push(path);
    }
  };
  visit(folder);
  return found.sort();
}

/** Text of a file of the repository. */
export function readSource(path: string): string {
  return readFileSync(join(repository, path), "utf8");
}

/** The TypeScript of the product: what runs on a node. Tests that lie beside it are left out. */
export function listSources(): string[] {
  return ["core", "backends", "plugins"]
    .flatMap(listFiles)
    .filter((path) => path.endsWith(".ts") && !path.endsWith(".test.ts"));
}
