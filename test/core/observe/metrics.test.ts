import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { Histogram } from "../../../core/observe/histogram.ts";
import { type Metric, renderMetrics } from "../../../core/observe/metrics.ts";
import { findValue, parseExposition } from "./exposition.ts";

interface Source {
  readonly peers: number;
  readonly errors: Readonly<Record<string, number>>;
  readonly latency: Histogram;
}

const METRICS: readonly Metric<Source>[] = [
  { name: "x_peers", type: "gauge", help: "Peers.", read: ({ peers }) => peers },
  {
    name: "x_errors_total",
    type: "counter",
    help: "Back\\slash and\nline feed.",
    labels: ["error"],
    read: ({ errors }) => Object.entries(errors).map(([error, value]) => ({ labels: { error }, value })),
  },
  { name: "x_seconds", type: "histogram", help: "Time.", read: ({ latency }) => [{ value: latency }] },
  { name: "x_absent", type: "gauge", help: "Nothing to tell.", read: () => undefined },
];

test("the text is the one of the exposition format", () => {
  const latency = new Histogram([0.1, 1]);
  for (const value of [0.05, 0.1, 0.5, 7]) latency.observe(value);
  expect(renderMetrics(METRICS, { peers: 3, errors: { EINVAL: 2 }, latency })).toBe(
    `# HELP x_peers Peers.
# TYPE x_peers gauge
x_peers 3
# HELP x_errors_total Back\\\\slash and\\nline feed.
# TYPE x_errors_total counter
x_errors_total{error="EINVAL"} 2
# HELP x_seconds Time.
# TYPE x_seconds histogram
x_seconds_bucket{le="0.1"} 2
x_seconds_bucket{le="1"} 3
x_seconds_bucket{le="+Inf"} 4
x_seconds_sum 7.65
x_seconds_count 4
`,
  );
});

test("any label value and any number come back from a strict reader", () => {
  fc.assert(
    fc.property(
      fc.dictionary(fc.string({ unit: "binary" }), fc.double({ noNaN: true, min: 0, max: 1e300 }), {
        noNullPrototype: true,
      }),
      (errors) => {
        const text = renderMetrics(METRICS, { peers: 0, errors, latency: new Histogram() });
        const metrics = parseExposition(text);
        for (const [error, value] of Object.entries(errors)) {
          expect(findValue(metrics, "x_errors_total", { error: error.toWellFormed() })).toBe(value);
        }
      },
    ),
    { numRuns: 50 },
  );
});

describe("a histogram", () => {
  test("counts a value once, in the first range that holds it", () => {
    fc.assert(
      fc.property(fc.array(fc.double({ min: 0, max: 10, noNaN: true })), (values) => {
        const histogram = new Histogram();
        for (const value of values) histogram.observe(value);
        expect(histogram.count).toBe(values.length);
        expect(histogram.sum).toBeCloseTo(values.reduce((sum, value) => sum + value, 0));
        for (const [bound, count] of histogram.cumulative) {
          expect(count).toBe(values.filter((value) => value <= bound).length);
        }
      }),
      { numRuns: 50 },
    );
  });
});

describe("the strict reader", () => {
  test.each([
    ["a sample without HELP", "x 1\n"],
    ["no TYPE", "# HELP x X.\nx 1\n"],
    ["a bad number", "# HELP x X.\n# TYPE x gauge\nx one\n"],
    ["a sample twice", "# HELP x X.\n# TYPE x gauge\nx 1\nx 2\n"],
    ["a counter without _total", "# HELP x X.\n# TYPE x counter\nx 1\n"],
    ["an unescaped quote", '# HELP x X.\n# TYPE x gauge\nx{a="b"c"} 1\n'],
    [
      "buckets that shrink",
      '# HELP x X.\n# TYPE x histogram\nx_bucket{le="1"} 2\nx_bucket{le="+Inf"} 1\nx_sum 1\nx_count 1\n',
    ],
    ["no last line feed", "# HELP x X.\n# TYPE x gauge\nx 1"],
  ])("refuses %s", (_, text) => {
    expect(() => parseExposition(text)).toThrow();
  });
});
