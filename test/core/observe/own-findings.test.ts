import { expect, test } from "bun:test";
import { Health } from "../../../core/observe/health.ts";
import { OwnFindings } from "../../../core/observe/own-findings.ts";
import { RecordingLog } from "./recording-log.ts";

const finding = (code: string) => ({ code, severity: "error", title: "t", text: "x", fix: "f" }) as const;

function setUp() {
  const health = new Health(new RecordingLog());
  const show = () => health.active().map(({ finding: { code }, subject }) => `${code} ${subject}`.trim());
  return { health, show, own: new OwnFindings(health) };
}

test("at the end what it raised is over, and nothing else", () => {
  const { health, show, own } = setUp();
  health.raise(finding("OTHER"));
  own.raise(finding("A"));
  own.raise(finding("B"), "peer 1");
  own.raise(finding("B"), "peer 2");
  own.clear("B", "peer 2");
  expect(show()).toEqual(["OTHER", "A", "B peer 1"]);
  own.end();
  expect(show()).toEqual(["OTHER"]);
});

test("after the end it is not heard, neither way", () => {
  const { health, show, own } = setUp();
  own.end();
  own.raise(finding("A"));
  health.raise(finding("B"));
  own.clear("B");
  own.end();
  expect(show()).toEqual(["B"]);
});

test("until then it clears what others left", () => {
  const { health, show, own } = setUp();
  health.raise(finding("A"));
  own.clear("A");
  expect(show()).toEqual([]);
});
