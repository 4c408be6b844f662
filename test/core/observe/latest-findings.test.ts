import { expect, test } from "bun:test";
import { Health } from "../../../core/observe/health.ts";
import { LatestFindings } from "../../../core/observe/latest-findings.ts";
import { silentLog } from "../../../core/observe/log.ts";

const odd = (text: string) =>
  ({ code: "ODD", severity: "warning", title: "odd", text, fix: "mend it" }) as const;

test("what the latest look does not find is over, what it still finds holds on", () => {
  const health = new Health(silentLog);
  const latest = new LatestFindings(health);
  const texts = () =>
    health
      .list()
      .map(({ text }) => text)
      .sort();
  latest.show([odd("a"), odd("b")], true);
  expect(texts()).toEqual(["a", "b"]);
  latest.show([odd("b"), odd("c")], true);
  expect(texts()).toEqual(["b", "c"]);
  latest.show([], true);
  expect(texts()).toEqual([]);
});

test("by code alone the newest text counts", () => {
  const health = new Health(silentLog);
  const latest = new LatestFindings(health);
  latest.show([odd("a")]);
  latest.show([odd("b")]);
  expect(health.list().map(({ text }) => text)).toEqual(["b"]);
});
