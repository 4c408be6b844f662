import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { BuildError } from "./error.ts";
import { hostTarget, type Target } from "./target.ts";

/** The parts of npm's package-lock.json used here. */
interface PackageLock {
  readonly packages: Readonly<Record<string, { readonly version?: string; readonly integrity?: string }>>;
}

/**
 * Path of the Bun executable that carries a target's program: the running one for this machine, else the one of
 * the npm package of the same version, fetched through npm and checked against test/toolchain/package-lock.json.
 * @throws BuildError when the package cannot be fetched or is not the locked one.
 */
export function findRuntime(target: Target, repository: string): string {
  if (target.name === hostTarget().name) return process.execPath;
  const toolchain = join(repository, "test/toolchain");
  const { version, integrity } = locked(target, toolchain);
  // Inside node_modules: ignored by git, and gone when the toolchain is installed anew.
  const cache = join(toolchain, "node_modules/.runtimes");
  const runtime = join(cache, `${target.name}-${version}`);
  if (!existsSync(runtime)) fetchRuntime(target, version, integrity, cache, runtime);
  return runtime;
}

function locked(target: Target, toolchain: string): { version: string; integrity: string } {
  const file = join(toolchain, "package-lock.json");
  const lock = JSON.parse(readFileSync(file, "utf8")) as PackageLock;
  const entry = lock.packages[`node_modules/${target.runtimePackage}`];
  if (!entry?.version || !entry.integrity) {
    throw new BuildError(`${file}: no entry for ${target.runtimePackage}`);
  }
  if (entry.version !== Bun.version) {
    throw new BuildError(`${file} pins Bun ${entry.version}, but Bun ${Bun.version} is building`);
  }
  return { version: entry.version, integrity: entry.integrity };
}

function fetchRuntime(
  target: Target,
  version: string,
  integrity: string,
  cache: string,
  runtime: string,
): void {
  const specifier = `${target.runtimePackage}@${version}`;
  mkdirSync(cache, { recursive: true });
  const work = mkdtempSync(join(cache, ".fetch-"));
  try {
    run(["npm", "pack", specifier, "--silent", "--ignore-scripts", "--pack-destination", work], specifier);
    const [archive] = new Bun.Glob("*.tgz").scanSync({ cwd: work });
    if (archive === undefined) throw new BuildError(`npm pack ${specifier} left no archive`);
    const bytes = readFileSync(join(work, archive));
    const found = `sha512-${createHash("sha512").update(bytes).digest("base64")}`;
    if (found !== integrity) {
      throw new BuildError(
        `${specifier}: integrity is ${found}, test/toolchain/package-lock.json wants ${integrity}`,
      );
    }
    run(["tar", "-xzf", join(work, archive), "-C", work, "package/bin/bun"], specifier);
    renameSync(join(work, "package/bin/bun"), runtime);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function run(command: string[], what: string): void {
  const result = Bun.spawnSync(command, { stdout: "ignore", stderr: "pipe", timeout: 300_000 });
  if (result.success) return;
  const reason = result.stderr.toString().trim().split("\n").at(-1) ?? `exit code ${result.exitCode}`;
  throw new BuildError(`${what}: ${command[0]} failed: ${reason}`);
}
