/**
 * `bun test/bench/main.ts [OPTION]...`: measures the compiled daemon against a real etcd in network namespaces, and
 * any other flannel-compatible executable in the same run. See docs/performance.md.
 */
import { accessSync, constants, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { executable } from "../lab/daemon.ts";
import { Ledger } from "./ledger.ts";
import { describeMachine, readLoad, readVersion } from "./machine.ts";
import { type BenchOptions, parseOptions, UsageError, usage } from "./options.ts";
import { type Report, renderMarkdown, renderScenario, type ScenarioResult } from "./report.ts";
import type { Scenario, Subject } from "./scenario.ts";
import { convergence } from "./scenarios/convergence.ts";
import { healing } from "./scenarios/healing.ts";
import { join } from "./scenarios/join.ts";
import { loop } from "./scenarios/loop.ts";
import { memory } from "./scenarios/memory.ts";
import { requests } from "./scenarios/requests.ts";
import { rules } from "./scenarios/rules.ts";
import { start } from "./scenarios/start.ts";
import { udp } from "./scenarios/udp.ts";
import { udpSoak } from "./scenarios/udp-soak.ts";

const SCENARIOS: readonly Scenario[] = [
  start,
  convergence,
  join,
  memory,
  requests,
  loop,
  rules,
  healing,
  udp,
  udpSoak,
];
const NAMES = SCENARIOS.map(({ name }) => name);

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  process.stderr.write(`bench: ${error.message}\n\n${usage(SCENARIOS)}`);
  process.exitCode = 2;
}

async function main(args: readonly string[]): Promise<number> {
  const options = parseOptions(args, NAMES);
  if (options.help) {
    process.stdout.write(usage(SCENARIOS));
    return 0;
  }
  if (process.getuid?.() !== 0) throw new UsageError("network namespaces need root");
  const subjects = chooseSubjects(options);
  const loadBefore = readLoad();
  const results: ScenarioResult[] = [];
  const interrupted = stopOnInterrupt();
  for (const scenario of SCENARIOS) {
    if (options.only.length > 0 && !options.only.includes(scenario.name)) continue;
    if (interrupted.aborted) break;
    const result = await runScenario(scenario, subjects, options);
    process.stdout.write(`${renderScenario(result, subjects.length > 1)}\n`);
    results.push(result);
  }
  const [ours, other] = subjects.map(({ file }) => readVersion(file));
  const report: Report = {
    machine: describeMachine(loadBefore),
    runs: options.runs,
    quick: options.quick,
    versions: { ours: ours ?? "", ...(other === undefined ? {} : { other }) },
    scenarios: results,
  };
  if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(report, null, 2)}\n`);
  if (options.markdown !== undefined) writeFileSync(options.markdown, renderMarkdown(report));
  return results.some(({ failure }) => failure !== undefined) ? 1 : 0;
}

function chooseSubjects({ against }: BenchOptions): readonly Subject[] {
  const ours = { file: executable(), ours: true };
  const other = against === undefined ? [] : [{ file: resolve(against), ours: false }];
  for (const { file } of [ours, ...other]) {
    try {
      accessSync(file, constants.X_OK);
    } catch {
      throw new UsageError(`there is no executable at ${file}`);
    }
  }
  return [ours, ...other];
}

/**
 * The first interrupt lets the scenario under way take its namespaces down (a terminal ends its daemons, too, so that
 * it fails soon); the second one ends everything and leaves them.
 */
function stopOnInterrupt(): AbortSignal {
  const controller = new AbortController();
  process.once("SIGINT", () => {
    process.stderr.write("interrupted: cleaning up (once more: end at once and leave the namespaces)\n");
    controller.abort();
  });
  return controller.signal;
}

async function runScenario(
  scenario: Scenario,
  subjects: readonly Subject[],
  { runs, quick }: BenchOptions,
): Promise<ScenarioResult> {
  const ledger = new Ledger(scenario.figures(quick));
  const { name, title } = scenario;
  let failure: string | undefined;
  try {
    await scenario.measure({
      subjects,
      runs,
      quick,
      record: (id, subject, value) => ledger.record(id, subject, value),
      note: (text) => ledger.note(text),
      progress: (text) => process.stderr.write(`${name}: ${text}\n`),
    });
  } catch (error) {
    failure = error instanceof Error ? error.message : String(error);
  }
  const { figures, notes } = ledger;
  return { name, title, figures, notes, ...(failure === undefined ? {} : { failure }) };
}
