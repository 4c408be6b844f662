import { expect, test } from "bun:test";
import { parseOptions, UsageError } from "./options.ts";
import { formatSamples, type Report, renderMarkdown, renderScenario, type ScenarioResult } from "./report.ts";

const result: ScenarioResult = {
  name: "start",
  title: "start → READY",
  notes: ["A note."],
  figures: [
    { id: "ready", label: "ready", unit: "s", atMost: 0.3, ours: [0.4, 0.3, 0.5], other: [0.8] },
    { id: "cpu", label: "CPU", unit: "s", ours: [0.25], other: [] },
    { id: "events", label: "events", unit: "per day", atMost: 0, ours: [0], other: [5214] },
  ],
};

const report: Report = {
  machine: {
    date: "2026-01-02",
    cpu: "A CPU",
    cores: 2,
    memory: "8 GB",
    kernel: "6.1.0",
    etcd: "3.4.23",
    loadBefore: "0.10",
    loadAfter: "0.90",
  },
  runs: 3,
  quick: false,
  versions: { ours: "1.0", other: "v9" },
  scenarios: [result],
};

test("samples are told with their spread, one alone without", () => {
  expect(formatSamples([0.4, 0.3, 0.5], "s")).toBe("0.40 s (0.30–0.50)");
  expect(formatSamples([1234.5], "per day")).toBe("1,235 per day");
  expect(formatSamples([12.34], "ms")).toBe("12.3 ms");
  expect(formatSamples([], "MB")).toBe("–");
});

test("a table says whether the target was met, by how much it was missed, and the ratio", () => {
  const text = renderScenario(result, true);
  expect(text).toContain("≤ 0.3 s ✗ +34 %");
  expect(text).toContain("≤ 0 per day ✓");
  expect(text).toMatch(/0\.40 s \(0\.30–0\.50\).*0\.80 s.*0\.50/);
  expect(text).toEndWith("A note.");
  expect(renderScenario({ ...result, failure: "no root" }, false)).toEndWith("could not be run: no root");
});

test("the Markdown names machine, load and versions, and has a row for each figure", () => {
  const text = renderMarkdown(report);
  expect(text).toStartWith(
    "Measured 2026-01-02 on 2 × A CPU, 8 GB, Linux 6.1.0, etcd 3.4.23; load average 0.10",
  );
  expect(text).toContain("Ours: 1.0. Other: v9.");
  expect(text).toContain("| figure | ours | target | other | ours ÷ other |");
  expect(text).toContain("| CPU | 0.25 s |  | – | – |");
  expect(renderMarkdown({ ...report, versions: { ours: "1.0" } })).toContain("| figure | ours | target |\n");
});

test.each([
  [["--only", "start,nothing"], '--only takes start, join, not "nothing"'],
  [["--runs", "0"], '--runs is a number from 1 to 50, not "0"'],
  [["--runs", "x"], '--runs is a number from 1 to 50, not "x"'],
  [["--fast"], "--fast"],
  [["extra"], "extra"],
])("%p is refused", (args, message) => {
  const parse = () => parseOptions(args, ["start", "join"]);
  expect(parse).toThrow(UsageError);
  expect(parse).toThrow(message);
});

test("arguments have defaults; quick means one run unless said otherwise", () => {
  expect(parseOptions([], ["start"])).toMatchObject({ against: undefined, only: [], runs: 5, quick: false });
  expect(parseOptions(["--quick"], ["start"])).toMatchObject({ runs: 1, quick: true });
  const given = ["--quick", "--runs=2", "--only=start", "--against", "/x", "--json=a", "--markdown=b"];
  expect(parseOptions(given, ["start"])).toEqual({
    against: "/x",
    only: ["start"],
    runs: 2,
    quick: true,
    json: "a",
    markdown: "b",
    help: false,
  });
});
