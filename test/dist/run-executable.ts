import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { buildExecutable } from "../../dist/build/executable.ts";
import { hostTarget } from "../../dist/build/target.ts";
import { identifyBuild } from "../../dist/build/version.ts";

export const repository = resolve(import.meta.dir, "../..");

/** A folder of its own below the system's temporary one, where no node_modules lies above; gone with the scope. */
export class TemporaryFolder implements Disposable {
  readonly path = mkdtempSync(join(tmpdir(), "flannel-dist-"));

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

/** Builds an executable for this machine with the project's own pipeline and returns the packages in it. */
export async function build(main: string, outfile: string): Promise<readonly string[]> {
  const input = { repository, main, plugins: "backends", identity: identifyBuild(repository) };
  return buildExecutable(input, hostTarget(), outfile);
}

/** Runs an executable in a folder with nothing in its environment but what is given; ended after `limit` ms. */
export async function run(
  executable: string,
  args: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string>> = {},
  limit = 20_000,
): Promise<{ readonly stdout: string; readonly stderr: string; readonly exitCode: number }> {
  const child = Bun.spawn([executable, ...args], {
    cwd,
    env,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const timer = setTimeout(() => child.kill("SIGKILL"), limit);
  const [stdout, stderr, exitCode] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  clearTimeout(timer);
  return { stdout, stderr, exitCode };
}
