/** The benchmark itself, in its shortest form, on the executable that the build left. */
import { expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { executable } from "../lab/daemon.ts";
import type { Report } from "./report.ts";

const MAIN = join(import.meta.dir, "main.ts");

async function bench(...args: string[]): Promise<{ stdout: string; stderr: string; exitCode: number }> {
  const child = Bun.spawn([process.execPath, MAIN, ...args], { stdout: "pipe", stderr: "pipe" });
  const [stdout, stderr, exitCode] = await Promise.all([
    child.stdout.text(),
    child.stderr.text(),
    child.exited,
  ]);
  return { stdout, stderr, exitCode };
}

test("it measures two executables in turns and writes every sample down", async () => {
  const folder = mkdtempSync(join(tmpdir(), "flannel-bench-"));
  try {
    const [json, markdown] = [join(folder, "report.json"), join(folder, "report.md")];
    const scenarios = ["--only", "start", "--quick", "--against", executable()];
    const { stdout, stderr, exitCode } = await bench(...scenarios, "--json", json, "--markdown", markdown);
    expect({ stderr, exitCode }).toMatchObject({ exitCode: 0 });
    expect(stdout).toContain("start → READY, no peers");
    const report = JSON.parse(readFileSync(json, "utf8")) as Report;
    expect(report.scenarios.map(({ name }) => name)).toEqual(["start"]);
    for (const { ours, other, label } of report.scenarios.flatMap(({ figures }) => figures)) {
      for (const samples of [ours, other]) {
        expect([label, samples.length, samples.every((sample) => sample > 0)]).toEqual([label, 1, true]);
      }
    }
    expect(readFileSync(markdown, "utf8")).toContain("### start → READY, no peers");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}, 120_000);

test("a scenario that cannot be run is told, and the exit code says so", async () => {
  const { stdout, exitCode } = await bench("--only", "start", "--quick", "--against", "/bin/false");
  expect(stdout).toContain("could not be run: h1: the daemon ended (code 1)");
  expect(exitCode).toBe(1);
}, 60_000);

test("wrong arguments end with the usage", async () => {
  expect(await bench("--against", "/nowhere")).toMatchObject({
    stdout: "",
    stderr: expect.stringContaining("bench: there is no executable at /nowhere\n\nUsage: npm run bench"),
    exitCode: 2,
  });
  const { stdout, exitCode } = await bench("--help");
  expect(stdout).toContain("convergence    start → all routes");
  expect(exitCode).toBe(0);
});
