import { renderTable } from "../lab/demo/table.ts";
import { type Figure, meetsTarget, ratioOf, spreadOf, type Unit } from "./figures.ts";
import type { Machine } from "./machine.ts";

/** What became of one scenario. */
export interface ScenarioResult {
  readonly name: string;
  readonly title: string;
  readonly figures: readonly Figure[];
  readonly notes: readonly string[];
  /** Why it could not be run (to its end), if so. */
  readonly failure?: string;
}

/** A whole run of the benchmark. */
export interface Report {
  readonly machine: Machine;
  readonly runs: number;
  readonly quick: boolean;
  /** First line of each executable's `--version`. */
  readonly versions: { readonly ours: string; readonly other?: string };
  readonly scenarios: readonly ScenarioResult[];
}

/** A scenario as a table for a terminal. */
export function renderScenario(result: ScenarioResult, compared: boolean): string {
  const table = renderTable(rows(result, compared));
  const failure = result.failure === undefined ? [] : [`could not be run: ${result.failure}`];
  return [`\n${result.name}: ${result.title}`, table, ...result.notes, ...failure].join("\n");
}

/** The whole report as Markdown, for docs/performance.md. */
export function renderMarkdown(report: Report): string {
  const { machine, versions, runs } = report;
  const compared = versions.other !== undefined;
  const head = [
    `Measured ${machine.date} on ${machine.cores} × ${machine.cpu}, ${machine.memory}, Linux ${machine.kernel}, ` +
      `etcd ${machine.etcd}; load average ${machine.loadBefore} before and ${machine.loadAfter} after; ` +
      `${runs} run${runs === 1 ? "" : "s"} each${report.quick ? ", **quick sizes**" : ""}. ` +
      `Ours: ${versions.ours}.${compared ? ` Other: ${versions.other}.` : ""}`,
  ];
  const sections = report.scenarios.map((result) => {
    const [header = [], ...body] = rows(result, compared);
    const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
    const notes = [...result.notes, ...(result.failure ? [`Could not be run: ${result.failure}`] : [])];
    return [
      `### ${result.title}`,
      "",
      ...[line(header), line(header.map((_, n) => (n === 0 ? "---" : "---:"))), ...body.map(line)],
      ...notes.flatMap((note) => ["", note]),
    ].join("\n");
  });
  return `${[...head, ...sections].join("\n\n")}\n`;
}

function rows({ figures }: ScenarioResult, compared: boolean): string[][] {
  return [
    ["figure", "ours", "target", ...(compared ? ["other", "ours ÷ other"] : [])],
    ...figures.map((figure) => [
      figure.label,
      formatSamples(figure.ours, figure.unit),
      formatTarget(figure),
      ...(compared ? [formatSamples(figure.other, figure.unit), formatRatio(figure)] : []),
    ]),
  ];
}

/** `0.31 s (0.29–0.35)`; a single sample has no spread. */
export function formatSamples(samples: readonly number[], unit: Unit): string {
  const spread = spreadOf(samples);
  if (spread === undefined) return "–";
  const { median, min, max } = spread;
  const value = `${formatNumber(median, unit)} ${unit}`;
  return samples.length === 1 ? value : `${value} (${formatNumber(min, unit)}–${formatNumber(max, unit)})`;
}

function formatTarget(figure: Figure): string {
  if (figure.atLeast !== undefined) {
    return `≥ ${figure.atLeast} ${figure.unit}${{ true: " ✓", false: " ✗", undefined: "" }[`${meetsTarget(figure)}`]}`;
  }
  if (figure.atMost === undefined) return "";
  const met = meetsTarget(figure);
  const mark = met === undefined ? "" : met ? " ✓" : ` ✗ ${formatExcess(figure)}`;
  return `≤ ${figure.atMost} ${figure.unit}${mark}`;
}

/** By how much a target is missed: `+12 %`; of a target of 0 there is no share. */
function formatExcess({ ours, atMost = 0 }: Figure): string {
  const median = spreadOf(ours)?.median ?? 0;
  return atMost === 0 ? "" : `+${Math.ceil((median / atMost - 1) * 100)} %`;
}

function formatRatio(figure: Figure): string {
  const ratio = ratioOf(figure);
  return ratio === undefined ? "–" : ratio.toFixed(2);
}

function formatNumber(value: number, unit: Unit): string {
  switch (unit) {
    case "s":
    case "Gbit/s":
    case "×":
      return value.toFixed(2);
    case "CPU s/Gbit":
      return value.toFixed(3);
    case "µs":
    case "k/s":
      return value.toFixed(1);
    case "ms":
    case "MB":
    case "%":
      return value.toFixed(1);
    case "per day":
    case "per minute":
      return value.toLocaleString("en", { maximumFractionDigits: value < 10 ? 1 : 0 });
  }
}
