import { parseArgs } from "node:util";

export interface BenchOptions {
  /** Another executable that takes flannel's flags. */
  readonly against: string | undefined;
  /** Names of scenarios; empty for all. */
  readonly only: readonly string[];
  readonly runs: number;
  readonly quick: boolean;
  readonly json: string | undefined;
  readonly markdown: string | undefined;
  readonly help: boolean;
}

/** Wrong arguments; the message says which and what is allowed. */
export class UsageError extends Error {}

/** Repetitions of a scenario that is repeated. */
const RUNS = 5;

/** The text of `--help`; `scenarios` are names with their one-line description. */
export function usage(scenarios: readonly { readonly name: string; readonly title: string }[]): string {
  return `Usage: npm run bench -- [OPTION]...

Measures dist/bin/flanneld (or FLANNELD) in network namespaces against a real etcd. Needs root.

  --against PATH   also measure this executable, in turns; only flags and environment of flannel are used with it
  --only A,B       only these scenarios (see below)
  --runs N         repetitions, 1–50 (default ${RUNS})
  --quick          small sizes and short windows: shows that the benchmark works, not how fast anything is
  --json FILE      write every sample to FILE
  --markdown FILE  write the tables to FILE
  --help           this text

Scenarios:
${scenarios.map(({ name, title }) => `  ${name.padEnd(15)}${title}`).join("\n")}

Exits 0 when every scenario could be run, whatever the figures are.
`;
}

/** Parses the arguments; throws {@link UsageError}. `known` are the scenarios' names. */
export function parseOptions(args: readonly string[], known: readonly string[]): BenchOptions {
  let values: ReturnType<typeof parse>;
  try {
    values = parse(args);
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
  const only = (values.only ?? "").split(",").filter((name) => name !== "");
  const unknown = only.find((name) => !known.includes(name));
  if (unknown !== undefined) throw new UsageError(`--only takes ${known.join(", ")}, not "${unknown}"`);
  const runs = Number(values.runs ?? (values.quick ? 1 : RUNS));
  if (!Number.isInteger(runs) || runs < 1 || runs > 50) {
    throw new UsageError(`--runs is a number from 1 to 50, not "${values.runs}"`);
  }
  return {
    against: values.against,
    only,
    runs,
    quick: values.quick,
    json: values.json,
    markdown: values.markdown,
    help: values.help,
  };
}

function parse(args: readonly string[]) {
  return parseArgs({
    args: [...args],
    strict: true,
    allowPositionals: false,
    options: {
      against: { type: "string" },
      only: { type: "string" },
      runs: { type: "string" },
      quick: { type: "boolean", default: false },
      json: { type: "string" },
      markdown: { type: "string" },
      help: { type: "boolean", default: false },
    },
  }).values;
}
