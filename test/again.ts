/**
 * `bun test/again.ts REPORT LOG`: the suite failed; runs the few files that did so once more, each alone, and names
 * them. Hundreds of tests with real kernels, clusters and clocks on a busy machine meet a moment now and then that no
 * deadline foresaw; what is broken fails twice. REPORT is Bun's JUnit report, LOG what it printed. Ends with the
 * totals in Bun's form, and with exit code 0 if everything passed in the end.
 */
import { readFileSync } from "node:fs";

/** More failing files than that are no chance. */
const MOST_FILES = 3;

const [report, log] = process.argv.slice(2);
if (report === undefined || log === undefined) throw new Error("usage: again.ts REPORT LOG");
const xml = readFileSync(report, "utf8");
const [, tests, failures, skipped] =
  /<testsuites [^>]*tests="(\d+)"[^>]*failures="(\d+)" skipped="(\d+)"/.exec(xml) ?? [];
const failed = [...xml.matchAll(/^ {2}<testsuite name="([^"]*)"[^>]* failures="(\d+)"/gm)]
  .filter(([, , number]) => number !== "0")
  .map(([, file]) => file ?? "");
// A file that could not even be loaded is in no report.
const unloaded = /^ *\d+ errors?$/m.test(readFileSync(log, "utf8"));
if (failed.length === 0 || failed.length > MOST_FILES || unloaded) process.exit(1);

console.log(`\nrun again, each alone: ${failed.join(", ")}\n`);
const twice: string[] = [];
for (const file of failed) {
  const again = Bun.spawn([process.execPath, "test", "--timeout", "60000", `./${file}`], {
    stdio: ["ignore", "inherit", "inherit"],
    env: { ...process.env, FLANNEL_VM_AHEAD: undefined },
  });
  if ((await again.exited) !== 0) twice.push(file);
}
const whole = Number(tests) - Number(skipped);
const left = twice.length === 0 ? 0 : Number(failures);
console.log(
  twice.length === 0
    ? `\nfailed at first, passed when run again: ${failed.join(", ")}`
    : `\nfailed twice: ${twice.join(", ")}`,
);
console.log(` ${whole - left} pass\n ${left} fail`);
process.exit(left === 0 ? 0 : 1);
