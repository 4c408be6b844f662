/**
 * `bun test/lab/vm/ahead.ts FOLDER`: runs the guests of all files with {@link vmTests}, one after the other, ahead of
 * the suite that will ask for what they said: a guest keeps one processor busy, and the suite another one. The outcomes
 * lie in FOLDER, beside the file `pid` with the id of this process; ends by itself.
 */
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { outcomeOf, runFileInVm } from "./vm.ts";

/** Longest time one file's guest may take, s. */
const SECONDS = 1_500;

const root = join(import.meta.dir, "../../..");
const [folder] = process.argv.slice(2);
if (folder === undefined) throw new Error("usage: ahead.ts FOLDER");

const files = [...new Bun.Glob("test/**/*.test.ts").scanSync({ cwd: root })]
  .map((file) => join(root, file))
  .filter((file) => readFileSync(file, "utf8").includes("vmTests(import.meta.path"));
for (const file of files.sort()) {
  let run = await runFileInVm(file, { timeout: SECONDS });
  // The clock of an emulated processor leaps when the machine is busy: what is broken fails again.
  if (run.exitCode !== 0) run = await runFileInVm(file, { timeout: SECONDS });
  const outcome = outcomeOf(folder, file);
  writeFileSync(`${outcome}.part`, JSON.stringify(run));
  renameSync(`${outcome}.part`, outcome);
  console.error(`${relative(root, file)}: exit code ${run.exitCode}`);
}
