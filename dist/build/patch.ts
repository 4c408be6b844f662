import { readFileSync } from "node:fs";
import type { BunPlugin } from "bun";
import { BuildError } from "./error.ts";

/** One source file of a dependency that does not work (or costs too much) as it is, and what becomes of its text. */
export interface Patch {
  readonly filter: RegExp;
  readonly edits: readonly Edit[];
}

/** A text that has to be there, and what takes its place; `file` is the path of the source file. */
export interface Edit {
  readonly find: string;
  replace(file: string): string;
}

/**
 * Applies patches to whatever of these files a build loads.
 * @throws BuildError (at build) when a dependency no longer has a text that is replaced.
 */
export function patchPlugin(name: string, patches: readonly Patch[]): BunPlugin {
  return {
    name,
    setup(build) {
      for (const { filter } of patches) {
        build.onLoad({ filter }, ({ path }) => ({ contents: applyPatches(path, patches), loader: "js" }));
      }
    },
  };
}

/**
 * The patched text of one source file; unchanged where no patch is meant for it.
 * @throws BuildError when the file no longer has a text that is replaced.
 */
export function applyPatches(path: string, patches: readonly Patch[]): string {
  let text = readFileSync(path, "utf8");
  for (const { find, replace } of patches.find(({ filter }) => filter.test(path))?.edits ?? []) {
    if (!text.includes(find)) {
      throw new BuildError(
        `${path}: expected the text ${JSON.stringify(find)}; check the patches in dist/build`,
      );
    }
    text = text.replace(find, () => replace(path));
  }
  return text;
}

/**
 * Makes sure that a bundle which holds the package (`/<name>/` in a path of its inputs) holds all files that were to
 * be patched: a renamed one would slip by.
 * @throws BuildError naming the file.
 */
export function checkPatched(
  inputs: readonly string[],
  packageFolder: string,
  patches: readonly Patch[],
): void {
  if (!inputs.some((input) => input.includes(packageFolder))) return;
  for (const { filter } of patches) {
    if (inputs.some((input) => filter.test(input))) continue;
    throw new BuildError(
      `${packageFolder} is bundled without a file that matches ${filter}; check the patches in dist/build`,
    );
  }
}
