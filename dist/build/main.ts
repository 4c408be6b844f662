/**
 * `bun dist/build/main.ts [--target NAME]… [--out FOLDER]`: builds the executables, their checksums and their bill
 * of materials into dist/bin. NAME is `host`, `all` or one of ./target.ts; without it x64 and, when its runtime can
 * be fetched, arm64. The executable of this machine is called `flanneld`, the others `flanneld-<target>`.
 */
import { mkdirSync, statSync, writeFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import { writeChecksums } from "./checksums.ts";
import { BuildError } from "./error.ts";
import { buildExecutable } from "./executable.ts";
import { findRuntime } from "./runtime.ts";
import { renderSbom } from "./sbom.ts";
import { DEFAULT_TARGETS, findTarget, hostTarget, TARGETS, type Target } from "./target.ts";
import { identifyBuild } from "./version.ts";

const SBOM = "flanneld.cdx.json";
const repository = resolve(import.meta.dir, "../..");

async function build(): Promise<void> {
  const { values } = parseArgs({
    options: { target: { type: "string", multiple: true }, out: { type: "string" } },
  });
  const folder = resolve(values.out ?? join(repository, "dist/bin"));
  // Source maps name files relative to the working directory: equal bytes wherever the build is started from.
  process.chdir(repository);
  const identity = identifyBuild(repository);
  const input = { repository, main: "core/main.ts", plugins: "backends", identity };
  const files: string[] = [];
  const packages = new Set<string>();
  mkdirSync(folder, { recursive: true });
  for (const target of chooseTargets(values.target)) {
    const started = performance.now();
    const file = target.name === hostTarget().name ? "flanneld" : `flanneld-${target.name}`;
    for (const name of await buildExecutable(input, target, join(folder, file))) packages.add(name);
    files.push(file);
    const seconds = ((performance.now() - started) / 1000).toFixed(1);
    const megabytes = (statSync(join(folder, file)).size / 1e6).toFixed(1);
    console.log(
      `${relative(repository, join(folder, file))}  ${target.name}  ${identity.version}  ${megabytes} MB  ${seconds} s`,
    );
  }
  writeFileSync(join(folder, SBOM), renderSbom(repository, [...packages].sort(), identity));
  writeChecksums(folder, [...files, SBOM]);
}

/** Targets to build. Only a target that nobody asked for may be left out. */
function chooseTargets(asked: readonly string[] | undefined): readonly Target[] {
  if (asked?.includes("all")) return TARGETS;
  if (asked !== undefined) return asked.map(findTarget);
  return DEFAULT_TARGETS.map(findTarget).filter((target) => {
    try {
      findRuntime(target, repository);
      return true;
    } catch (error) {
      if (!(error instanceof BuildError)) throw error;
      console.error(`left out ${target.name}: ${error.message}`);
      return false;
    }
  });
}

try {
  await build();
} catch (error) {
  const known = error instanceof BuildError || (error instanceof TypeError && "code" in error);
  if (!known) throw error;
  console.error(`build: ${error.message}`);
  process.exitCode = 1;
}
