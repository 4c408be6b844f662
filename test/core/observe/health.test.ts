import { expect, test } from "bun:test";
import type { Finding } from "../../../core/observe/finding.ts";
import { Health } from "../../../core/observe/health.ts";
import { RecordingLog } from "./recording-log.ts";

const lost: Finding = {
  code: "STORE_LOST",
  severity: "error",
  title: "the store cannot be reached",
  text: "connection refused",
  fix: "Look at the store.",
};

function setUp() {
  const log = new RecordingLog();
  return { log, health: new Health(log) };
}

test("a problem that holds for a thousand tries is one line, and one when it is over", () => {
  const { log, health } = setUp();
  for (let tries = 0; tries < 1000; tries++) health.raise(lost);
  expect(log.lines).toEqual([
    {
      level: "error",
      message: "the store cannot be reached: connection refused",
      fields: { code: "STORE_LOST", fix: "Look at the store." },
    },
  ]);
  health.clear("STORE_LOST");
  health.clear("STORE_LOST");
  expect(log.messages()).toEqual([
    "the store cannot be reached: connection refused",
    "over: the store cannot be reached",
  ]);
  expect(log.lines[1]?.fields).toEqual({ code: "STORE_LOST", seconds: 0 });
});

test("a changed text is a line, going back to the old one too", () => {
  const { log, health } = setUp();
  for (const text of ["refused", "refused", "timed out", "refused"]) health.raise({ ...lost, text });
  expect(log.messages().map((message) => message.split(": ")[1])).toEqual([
    "refused",
    "timed out",
    "refused",
  ]);
});

test("the level of the line follows the severity", () => {
  const { log, health } = setUp();
  for (const severity of ["info", "warning", "error"] as const) {
    health.raise({ ...lost, code: severity.toUpperCase(), severity });
  }
  expect(log.lines.map((line) => line.level)).toEqual(["info", "warn", "error"]);
});

test("subjects of one code are findings of their own", () => {
  const { log, health } = setUp();
  health.raise(lost, "a");
  health.raise(lost, "b");
  health.clear("STORE_LOST", "a");
  expect(health.list()).toEqual([lost]);
  expect(health.has("STORE_LOST")).toBe(true);
  health.clear("STORE_LOST");
  expect(health.has("STORE_LOST")).toBe(true);
  health.clear("STORE_LOST", "b");
  expect(health.has("STORE_LOST")).toBe(false);
  expect(health.list()).toEqual([]);
  expect(log.lines.map((line) => line.fields.subject)).toEqual(["a", "b", "a", "b"]);
});

test("clearing what does not hold says nothing", () => {
  const { log, health } = setUp();
  health.clear("STORE_LOST");
  expect(log.lines).toEqual([]);
});

test("a listener is told what the log is told, with subject and age", () => {
  const { health } = setUp();
  const told: string[] = [];
  health.listen((change, { finding, subject, since }) => {
    expect(Date.now() - since).toBeLessThan(10_000);
    told.push(`${change} ${finding.code} ${subject} ${finding.text}`);
  });
  for (const text of ["refused", "refused", "timed out"]) health.raise({ ...lost, text }, "a");
  health.clear("STORE_LOST", "a");
  health.clear("STORE_LOST", "a");
  expect(told).toEqual([
    "raised STORE_LOST a refused",
    "raised STORE_LOST a timed out",
    "over STORE_LOST a timed out",
  ]);
});

test("the age of a finding is that of its first appearance, whatever its text does", () => {
  const { health } = setUp();
  health.raise(lost);
  const [first] = health.active();
  health.raise({ ...lost, text: "timed out" });
  expect(health.active()).toEqual([
    { finding: { ...lost, text: "timed out" }, subject: "", since: first!.since },
  ]);
});
