/**
 * `bun test/suite.ts`: all tests. First those without guests (test/lab/vm), three files at a time, as they wait a lot;
 * then those with, two at a time: beside others a guest takes three times as long, and what waits inside of it, looking
 * again and again, has more work then. What a guest says is shown when its file has ended. Ends with the totals in Bun's
 * form.
 *
 * The few files that failed are run once more, each alone, and named: thousands of tests with real kernels, clusters
 * and clocks meet a moment now and then that no deadline foresaw. What is broken fails twice.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

/** Builds, namespaces and etcd members take their time on a busy machine, ms. */
const TIMEOUT_MS = 60_000;
/** Files at a time, on two processors. */
const WORKERS = 3;
/** Guests at a time: each keeps a processor busy. */
const GUESTS = 2;
/** More failing files than that are no chance. */
const MOST_FILES = 3;

/** What a lane came to; among the files that failed are those that could not be loaded, whose tests nobody counts. */
interface Outcome {
  readonly passed: number;
  readonly failed: number;
  readonly files: readonly string[];
}

const root = resolve(import.meta.dir, "..");
const reports = mkdtempSync(join(tmpdir(), "flannel-suite-"));
const files = [...new Bun.Glob("test/**/*.test.ts").scanSync({ cwd: root })].sort();
const needsGuest = (file: string) => readFileSync(join(root, file), "utf8").includes('/vm.ts"');

function spawnTests(args: readonly string[], stdout: "inherit" | "pipe") {
  return Bun.spawn([process.execPath, "test", "--timeout", `${TIMEOUT_MS}`, ...args], {
    cwd: root,
    stdio: ["ignore", stdout, stdout === "pipe" ? "pipe" : "inherit"],
  });
}

async function runLane(
  name: string,
  lane: readonly string[],
  options: readonly string[],
  stdout: "inherit" | "pipe",
) {
  const report = join(reports, `${name}.xml`);
  const reporter = ["--reporter=junit", `--reporter-outfile=${report}`];
  const child = spawnTests([...reporter, ...options, ...lane.map((file) => `./${file}`)], stdout);
  const output = child.stdout
    ? Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
    : Promise.resolve([]);
  await child.exited;
  return { outcome: readOutcome(report, lane), output: (await output).join("") };
}

/** What Bun's JUnit report says; each file is a suite directly below the whole. */
function readOutcome(report: string, lane: readonly string[]): Outcome {
  const xml = existsSync(report) ? readFileSync(report, "utf8") : "";
  const totals = /<testsuites [^>]*tests="(\d+)"[^>]*failures="(\d+)" skipped="(\d+)"/.exec(xml) ?? [];
  const [, tests = 0, failed = 0, skipped = 0] = totals.map(Number);
  const failures = new Map(
    [...xml.matchAll(/^ {2}<testsuite name="([^"]*)"[^>]* failures="(\d+)"/gm)].map(([, file = "", n]) => [
      file,
      n,
    ]),
  );
  return {
    passed: tests - failed - skipped,
    failed,
    files: lane.filter((file) => failures.get(file) !== "0"),
  };
}

/** Runs the failing files again where that makes sense; says, and returns, how many are left. */
async function runAgain(failing: readonly string[]): Promise<number> {
  if (failing.length === 0) return 0;
  if (failing.length > MOST_FILES) {
    console.log(`\nfailed: ${failing.join(", ")}`);
    return failing.length;
  }
  console.log(`\nrun again, each alone: ${failing.join(", ")}\n`);
  const twice: string[] = [];
  for (const file of failing) if ((await spawnTests([`./${file}`], "inherit").exited) !== 0) twice.push(file);
  if (twice.length > 0) console.log(`\nfailed twice: ${twice.join(", ")}`);
  else console.log(`\nfailed at first, passed when run again: ${failing.join(", ")}`);
  return twice.length;
}

/** Runs files with guests one by one, as long as there are any in the queue. */
async function runGuests(queue: string[], outcomes: Outcome[]): Promise<void> {
  for (let file = queue.shift(); file !== undefined; file = queue.shift()) {
    const { outcome, output } = await runLane(file.replaceAll("/", "_"), [file], [], "pipe");
    outcomes.push(outcome);
    console.log(`\nin a guest:\n${output}`);
  }
}

try {
  const guests = files.filter(needsGuest);
  const hostFiles = files.filter((file) => !needsGuest(file));
  const outcomes: Outcome[] = [];
  const host = await runLane("host", hostFiles, [`--parallel=${WORKERS}`], "inherit");
  outcomes.push(host.outcome);
  await Promise.all(Array.from({ length: GUESTS }, () => runGuests(guests, outcomes)));
  const failing = outcomes.flatMap(({ files: left }) => left);
  const passed = outcomes.reduce((sum, each) => sum + each.passed, 0);
  // A file that could not be loaded counts as one.
  const failed = Math.max(
    outcomes.reduce((sum, each) => sum + each.failed, 0),
    failing.length,
  );
  const left = await runAgain(failing);
  console.log(`\n ${left === 0 ? passed + failed : passed} pass\n ${left === 0 ? 0 : failed} fail`);
  process.exitCode = left === 0 ? 0 : 1;
} finally {
  rmSync(reports, { recursive: true, force: true });
}
