/** One line with a value of the text exposition format. */
export interface ParsedSample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** A metric with all its lines. */
export interface ParsedMetric {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly samples: readonly ParsedSample[];
}

const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*/;
const LABEL = /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"/;
const NUMBER = /^(?:[+-]Inf|NaN|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)$/;

/**
 * A strict reader of Prometheus' text exposition format 0.0.4: every metric has HELP and TYPE right before its
 * samples, in that order, once; names and labels are legal; no sample is there twice; histograms are complete and
 * their buckets grow. Throws at the first line that is not so.
 */
export function parseExposition(text: string): readonly ParsedMetric[] {
  if (text !== "" && !text.endsWith("\n")) throw new Error("the last line has no line feed");
  const metrics: { name: string; type: string; help: string; samples: ParsedSample[] }[] = [];
  const lines = text.split("\n").slice(0, -1);
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] ?? "";
    const help = /^# HELP (\S+) (.+)$/.exec(line);
    if (help) {
      const [, name = "", words = ""] = help;
      const type = /^# TYPE (\S+) (counter|gauge|histogram)$/.exec(lines[++at] ?? "");
      if (type?.[1] !== name) throw new Error(`line ${at + 1}: no TYPE of ${name}: ${lines[at]}`);
      if (metrics.some((metric) => metric.name === name)) throw new Error(`${name} is there twice`);
      metrics.push({ name, type: type[2] ?? "", help: words, samples: [] });
      continue;
    }
    const metric = metrics.at(-1);
    if (!metric) throw new Error(`line ${at + 1}: a sample before any HELP: ${line}`);
    metric.samples.push(parseSample(line, metric, at + 1));
  }
  for (const metric of metrics) check(metric);
  return metrics;
}

function parseSample(line: string, { name, type }: { name: string; type: string }, at: number): ParsedSample {
  const found = NAME.exec(line)?.[0] ?? "";
  const allowed = type === "histogram" ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name];
  if (!allowed.includes(found)) throw new Error(`line ${at}: ${found} is no sample of ${name}`);
  let rest = line.slice(found.length);
  const labels: Record<string, string> = {};
  if (rest.startsWith("{")) {
    rest = rest.slice(1);
    while (!rest.startsWith("}")) {
      const [whole, label = "", value = ""] = LABEL.exec(rest) ?? [];
      if (whole === undefined) throw new Error(`line ${at}: no label: ${rest}`);
      if (label in labels) throw new Error(`line ${at}: label ${label} twice`);
      labels[label] = value.replace(/\\(.)/g, (_, char: string) => (char === "n" ? "\n" : char));
      rest = rest.slice(whole.length);
      if (rest.startsWith(",")) rest = rest.slice(1);
      else if (!rest.startsWith("}")) throw new Error(`line ${at}: no comma between labels: ${rest}`);
    }
    rest = rest.slice(1);
  }
  const number = rest.slice(1);
  if (!rest.startsWith(" ") || !NUMBER.test(number)) throw new Error(`line ${at}: no value: ${line}`);
  return { name: found, labels, value: Number(number.replace("Inf", "Infinity")) };
}

function check({ name, type, samples }: ParsedMetric): void {
  const seen = new Set<string>();
  for (const sample of samples) {
    const key = JSON.stringify([sample.name, sample.labels]);
    if (seen.has(key)) throw new Error(`${name}: ${key} is there twice`);
    seen.add(key);
    if (type === "counter" && !(sample.value >= 0)) throw new Error(`${name}: a counter below 0`);
  }
  if (type === "counter" && !name.endsWith("_total")) throw new Error(`${name}: a counter without _total`);
  if (type === "histogram") checkHistogram(name, samples);
}

function checkHistogram(name: string, samples: readonly ParsedSample[]): void {
  const groups = Map.groupBy(samples, ({ labels: { le: _, ...labels } }) => JSON.stringify(labels));
  for (const [labels, group] of groups) {
    const buckets = group.filter((sample) => sample.name === `${name}_bucket`);
    const bounds = buckets.map(({ labels: { le = "" } }) => Number(le.replace("Inf", "Infinity")));
    const counts = buckets.map(({ value }) => value);
    const grows = (numbers: readonly number[], strictly: boolean) =>
      numbers.every(
        (number, at) => at === 0 || number > numbers[at - 1]! || (!strictly && number === numbers[at - 1]),
      );
    if (bounds.at(-1) !== Infinity || !grows(bounds, true) || !grows(counts, false)) {
      throw new Error(`${name}${labels}: bad buckets`);
    }
    if (group.find((sample) => sample.name === `${name}_count`)?.value !== counts.at(-1)) {
      throw new Error(`${name}${labels}: the last bucket is not the count`);
    }
    if (!group.some((sample) => sample.name === `${name}_sum`)) throw new Error(`${name}${labels}: no sum`);
  }
}

/** The value of the sample with these labels (others may be there too), undefined when there is none. */
export function findValue(
  metrics: readonly ParsedMetric[],
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number | undefined {
  return metrics
    .flatMap(({ samples }) => samples)
    .find(
      (sample) =>
        sample.name === name && Object.entries(labels).every(([key, value]) => sample.labels[key] === value),
    )?.value;
}
