import { Histogram } from "./histogram.ts";

/** What is known of a metric without reading it. */
export interface MetricSpec {
  /** Lower case with underscores; counters end in `_total`. */
  readonly name: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  /** Names of its labels. */
  readonly labels?: readonly string[];
}

/** One reading of a metric. */
export interface Sample {
  readonly labels?: Readonly<Record<string, string>>;
  readonly value: number | Histogram;
}

/** A metric that is read from `Source` when somebody asks: while nobody does, it costs nothing. */
export interface Metric<Source> extends MetricSpec {
  /** A single number for a metric without labels; undefined or an empty list where there is nothing to tell. */
  readonly read: (source: Source) => number | undefined | readonly Sample[];
}

/** Media type of {@link renderMetrics}. */
export const METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** All metrics in Prometheus' text exposition format 0.0.4; a metric without samples is left out. */
export function renderMetrics<Source>(metrics: readonly Metric<Source>[], source: Source): string {
  return metrics
    .map((metric) => {
      const lines = samplesOf(metric, source).flatMap((sample) => renderSample(metric, sample));
      if (lines.length === 0) return "";
      const { name, type, help } = metric;
      return [`# HELP ${name} ${escapeHelp(help)}`, `# TYPE ${name} ${type}`, ...lines, ""].join("\n");
    })
    .join("");
}

function samplesOf<Source>(metric: Metric<Source>, source: Source): readonly Sample[] {
  const read = metric.read(source);
  if (read === undefined) return [];
  return typeof read === "number" ? [{ value: read }] : read;
}

function renderSample({ name }: MetricSpec, { labels = {}, value }: Sample): string[] {
  if (!(value instanceof Histogram)) return [`${name}${renderLabels(labels)} ${renderNumber(value)}`];
  const buckets = value.cumulative.map(
    ([bound, number]) => `${name}_bucket${renderLabels({ ...labels, le: renderNumber(bound) })} ${number}`,
  );
  return [
    ...buckets,
    `${name}_sum${renderLabels(labels)} ${renderNumber(value.sum)}`,
    `${name}_count${renderLabels(labels)} ${value.count}`,
  ];
}

function renderLabels(labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).map(([label, value]) => `${label}="${escapeLabel(value)}"`);
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

function renderNumber(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return "+Inf";
  if (value === Number.NEGATIVE_INFINITY) return "-Inf";
  return String(value);
}

function escapeHelp(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
}

function escapeLabel(text: string): string {
  return escapeHelp(text.toWellFormed()).replaceAll('"', '\\"');
}
