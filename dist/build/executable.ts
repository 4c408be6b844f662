import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { BuildError } from "./error.ts";
import { ETCD3_FOLDER, ETCD3_PATCHES } from "./etcd3.ts";
import { checkPatched, patchPlugin } from "./patch.ts";
import { PINO_FOLDER, PINO_PATCHES } from "./pino.ts";
import { findRuntime } from "./runtime.ts";
import type { Target } from "./target.ts";
import type { BuildIdentity } from "./version.ts";

/** What goes into an executable. */
export interface ExecutableInput {
  readonly repository: string;
  /** First entry point, relative to the repository. */
  readonly main: string;
  /** Folder of built-in plugins, relative to the repository; each `<name>/` has plugin.json and index.ts. */
  readonly plugins: string;
  readonly identity: BuildIdentity;
}

/**
 * Entry points beside the main one: workers, and every built-in plugin so that the loader can import it by path.
 * The probe is where core/registry looks for it in the executable; a plugin that has a worker finds it beside itself.
 */
const WORKERS = ["core/registry/probe.ts"];
const PLUGIN_WORKER = "worker.ts";

/**
 * Builds one executable and moves it to `outfile` in one step. Inside it lie the program, `backends/<name>/index.js`
 * and `backends/<name>/plugin.json`, all below `/$bunfs/root`. Returns the folders of the npm packages
 * that went in.
 * @throws BuildError when the bundler refuses or the target's runtime cannot be had.
 */
export async function buildExecutable(
  input: ExecutableInput,
  target: Target,
  outfile: string,
): Promise<readonly string[]> {
  const { repository, identity } = input;
  const runtime = findRuntime(target, repository);
  const folder = dirname(outfile);
  mkdirSync(folder, { recursive: true });
  const work = mkdtempSync(join(folder, ".build-"));
  try {
    const names = pluginNames(join(repository, input.plugins));
    // The bundler embeds the name of the output file: the same one for every target keeps builds comparable.
    const built = join(work, "flanneld");
    const result = await Bun.build({
      entrypoints: [
        input.main,
        ...WORKERS,
        ...names.flatMap((name) => pluginEntries(repository, `${input.plugins}/${name}`)),
      ].map((file) => join(repository, file)),
      root: repository,
      target: "bun",
      format: "esm",
      // Each backend and each heavy package becomes a chunk that costs nothing until it is imported.
      splitting: true,
      minify: true,
      // Halves the time to the first log line; needs format esm because of top-level await.
      bytecode: true,
      sourcemap: "linked",
      metafile: true,
      define: {
        BUILD_VERSION: JSON.stringify(identity.version),
        BUILD_COMMIT: JSON.stringify(identity.commit),
        // CommonJS packages would carry the path of this checkout: no two builds of one source would be equal.
        __dirname: JSON.stringify("/$bunfs/root"),
        __filename: JSON.stringify("/$bunfs/root/flanneld"),
      },
      plugins: [patchPlugin("etcd3", ETCD3_PATCHES), patchPlugin("pino", PINO_PATCHES)],
      compile: {
        outfile: built,
        target: target.bun,
        executablePath: runtime,
        assets: stageManifests(join(repository, input.plugins), names, join(work, "assets")),
        // The daemon does a little of everything once and then waits: compiling code for speed costs more than it
        // gives. A backend that moves packets itself turns it back (Bun.unsafe.setJITPolicy(1)).
        jitPolicy: 8,
        // Nothing in the working directory may act on the daemon.
        autoloadDotenv: false,
        autoloadBunfig: false,
        autoloadTsconfig: false,
        autoloadPackageJson: false,
      },
      throw: false,
    });
    if (!result.success) throw new BuildError(result.logs.map(renderLog).join("\n"));
    const inputs = Object.keys(result.metafile?.inputs ?? {});
    checkPatched(inputs, ETCD3_FOLDER, ETCD3_PATCHES);
    checkPatched(inputs, PINO_FOLDER, PINO_PATCHES);
    renameSync(built, outfile);
    return bundledPackages(inputs);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** A message of the bundler as `file:line:column: message`. */
function renderLog({ message, position }: BuildMessage | ResolveMessage): string {
  return position ? `${position.file}:${position.line}:${position.column}: ${message}` : message;
}

/** A plugin's module, and its worker if it has one; relative to the repository. */
function pluginEntries(repository: string, folder: string): string[] {
  const worker = `${folder}/${PLUGIN_WORKER}`;
  return [`${folder}/index.ts`, ...(existsSync(join(repository, worker)) ? [worker] : [])];
}

/** Names of the built-in plugins, sorted. A folder without manifest is one that is being written: an error. */
function pluginNames(folder: string): string[] {
  const names = existsSync(folder) ? readdirSync(folder).sort() : [];
  for (const name of names) {
    for (const file of ["plugin.json", "index.ts"]) {
      if (!existsSync(join(folder, name, file)))
        throw new BuildError(`${join(folder, name, file)} is missing`);
    }
  }
  return names;
}

/** Copies the manifests into `<stage>/backends/<name>/`: assets of equal base name collide unless a folder holds them. */
function stageManifests(folder: string, names: readonly string[], stage: string): string[] {
  if (names.length === 0) return [];
  for (const name of names) {
    mkdirSync(join(stage, "backends", name), { recursive: true });
    copyFileSync(join(folder, name, "plugin.json"), join(stage, "backends", name, "plugin.json"));
  }
  return [join(stage, "backends")];
}

/** Folders of the npm packages among the bundler's inputs (`…/node_modules/@scope/name`), sorted. */
function bundledPackages(inputs: readonly string[]): string[] {
  const folders = new Set<string>();
  for (const input of inputs) {
    const folder = /^.*node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(input)?.[0];
    if (folder !== undefined) folders.add(resolve(folder));
  }
  return [...folders].sort();
}
