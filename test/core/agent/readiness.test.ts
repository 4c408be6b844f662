import { expect, test } from "bun:test";
import { judgeReadiness, type ReadinessInput } from "../../../core/agent/readiness.ts";
import type { Severity } from "../../../core/observe/finding.ts";

const well: ReadinessInput = {
  phase: "serving",
  synced: true,
  lease: { state: "held", secondsLeft: 60 },
  failing: 0,
  findings: [],
};

const finding = (code: string, severity: Severity = "error", subject = "") => ({
  finding: { code, severity, title: "t", text: "x", fix: "f" },
  subject,
  since: 0,
});

function codes(change: Partial<ReadinessInput>): readonly string[] {
  return judgeReadiness({ ...well, ...change }).map(({ code }) => code);
}

test("all is well", () => {
  expect(codes({})).toEqual([]);
  expect(codes({ lease: { state: "held" } })).toEqual([]);
  expect(codes({ lease: { state: "renewal-failing", secondsLeft: 1 } })).toEqual([]);
  expect(codes({ findings: [finding("A", "warning"), finding("B", "info")] })).toEqual([]);
});

test.each<[what: string, change: Partial<ReadinessInput>, codes: readonly string[]]>([
  ["the start", { phase: "starting", synced: false, lease: undefined }, ["STARTING"]],
  ["the stop", { phase: "stopping" }, ["STOPPING"]],
  ["peers that are not programmed yet", { synced: false }, ["NOT_SYNCED"]],
  ["a conflict", { lease: { state: "conflict" } }, ["LEASE_LOST"]],
  ["a lease that ran out", { lease: { state: "renewal-failing", secondsLeft: 0 } }, ["LEASE_LOST"]],
  ["a held lease that nobody renewed in time", { lease: { state: "held", secondsLeft: 0 } }, ["LEASE_LOST"]],
  ["refused objects", { failing: 2 }, ["DATAPLANE_FAILING"]],
  [
    "errors, each with its subject",
    { findings: [finding("A", "error", "10.5.1.0-24"), finding("A", "error", "10.5.2.0-24")] },
    ["A", "A"],
  ],
])("%s is a reason", (_, change, expected) => {
  expect(codes(change)).toEqual([...expected]);
});

test("what a finding says is not said twice", () => {
  const lease = { state: "conflict" };
  expect(
    codes({ lease, failing: 1, findings: [finding("LEASE_CONFLICT"), finding("DATAPLANE_REFUSED")] }),
  ).toEqual(["LEASE_CONFLICT", "DATAPLANE_REFUSED"]);
  // A warning is no reason, so it does not stand for one either.
  expect(codes({ lease, findings: [finding("LEASE_RENEWAL", "warning")] })).toEqual(["LEASE_LOST"]);
});

test("a reason says what to do", () => {
  const input: ReadinessInput = { ...well, phase: "starting", lease: { state: "conflict" }, failing: 1 };
  for (const reason of judgeReadiness(input)) {
    for (const text of [reason.code, reason.title, reason.text, reason.fix]) expect(text).not.toBe("");
  }
});
