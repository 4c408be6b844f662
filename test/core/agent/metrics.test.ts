import { expect, test } from "bun:test";
import { AGENT_METRICS } from "../../../core/agent/metrics.ts";
import { Observation } from "../../../core/agent/observation.ts";
import type { Settings } from "../../../core/agent/settings.ts";
import { Health } from "../../../core/observe/health.ts";
import { silentLog } from "../../../core/observe/log.ts";
import { renderMetrics } from "../../../core/observe/metrics.ts";
import { findValue, parseExposition } from "../observe/exposition.ts";

test("names are ours or the process's, each once; counters end in _total; help is a sentence", () => {
  const names = AGENT_METRICS.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  for (const { name, type, help, labels = [] } of AGENT_METRICS) {
    expect(name).toMatch(/^(?:flannel|process)_[a-z][a-z_]*[a-z]$/);
    expect([name, name.endsWith("_total")]).toEqual([name, type === "counter"]);
    expect(help).toMatch(/^[A-Z].*\.$/);
    for (const label of labels) expect(label).toMatch(/^[a-z][a-z_]*$/);
  }
});

test("a daemon that has only just begun tells what there is, and is not ready", () => {
  const settings = { subnetFile: "/nonexistent" } as Settings;
  const health = new Health(silentLog);
  const build = { version: '1.0.0-"x"', commit: "" };
  const observation = new Observation({ build, settings, health });
  health.raise({ code: "A", severity: "error", title: "t", text: "x", fix: "f" }, "one");
  health.raise({ code: "A", severity: "error", title: "t", text: "x", fix: "f" }, "two");
  observation.loops.open("lease");
  const metrics = parseExposition(renderMetrics(AGENT_METRICS, observation));
  expect(findValue(metrics, "flannel_build_info", build)).toBe(1);
  expect(findValue(metrics, "flannel_ready")).toBe(0);
  expect(findValue(metrics, "flannel_findings", { code: "A", severity: "error" })).toBe(2);
  expect(findValue(metrics, "flannel_repairs_total", { object: "route" })).toBe(0);
  expect(findValue(metrics, "flannel_loop_restarts_total", { loop: "lease" })).toBe(0);
  expect(findValue(metrics, "flannel_lease_seconds_left")).toBeUndefined();
  for (const { name, samples } of metrics) {
    const declared = AGENT_METRICS.find((metric) => metric.name === name)?.labels ?? [];
    for (const sample of samples) expect(Object.keys(sample.labels).sort()).toEqual([...declared].sort());
  }
});

test("findings go into the journal, under the peer they are about", () => {
  const settings = { subnetFile: "/nonexistent" } as Settings;
  const health = new Health(silentLog);
  const { journal } = new Observation({ build: { version: "1", commit: "" }, settings, health });
  health.raise(
    { code: "PEER_REJECTED", severity: "warning", title: "t", text: "x", fix: "f" },
    "10.5.1.0-24",
  );
  health.clear("PEER_REJECTED", "10.5.1.0-24");
  health.raise({ code: "LOOP_RESTARTED", severity: "error", title: "t", text: "x", fix: "f" }, "host");
  expect(journal.list("10.5.1.0-24").map(({ text }) => text)).toEqual([
    "warning PEER_REJECTED t: x",
    "warning PEER_REJECTED over: t",
  ]);
  expect(journal.list().at(-1)?.text).toBe("error LOOP_RESTARTED (host) t: x");
});
