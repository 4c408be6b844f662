import { resolve } from "node:path";

/** Where `bun build --compile` puts the files of an executable; dist/build lays them out like the repository. */
const EXECUTABLE_ROOT = "/$bunfs/root";

/** Folder that holds the built-in plugins: inside the executable, or in the repository when run from source. */
export function embeddedRoot(): string {
  return Bun.isStandaloneExecutable
    ? `${EXECUTABLE_ROOT}/backends`
    : resolve(import.meta.dir, "../../backends");
}

/** The worker that tries plugins out: an entry point of its own in the executable. */
export function probeModule(): string {
  return Bun.isStandaloneExecutable
    ? `${EXECUTABLE_ROOT}/core/registry/probe.js`
    : `${import.meta.dir}/probe.ts`;
}
