import { expect, test } from "bun:test";
import { healthRoutes, statusRoutes } from "../../../core/agent/endpoints.ts";
import { Observation } from "../../../core/agent/observation.ts";
import type { Settings } from "../../../core/agent/settings.ts";
import type { Answer } from "../../../core/observe/answer.ts";
import { Health } from "../../../core/observe/health.ts";
import { silentLog } from "../../../core/observe/log.ts";

/** A daemon that has only just begun. */
function setUp() {
  const settings = { subnetFile: "/nonexistent" } as Settings;
  const build = { version: "1.0.0", commit: "abc" };
  const observation = new Observation({ build, settings, health: new Health(silentLog) });
  const routes = { ...healthRoutes(observation), ...statusRoutes(observation) };
  const ask = async (path: string): Promise<Answer> => {
    const url = new URL(path, "http://flanneld");
    return await routes[url.pathname]!(url.searchParams);
  };
  return { observation, ask };
}

test("a loop that is not heard of makes the process not alive, by name, until it is heard of again", async () => {
  const { observation, ask } = setUp();
  const pulse = observation.loops.open("lease");
  expect(await ask("/livez")).toMatchObject({ status: 200, body: "flanneld is alive" });
  // It should have been heard of two minutes ago.
  pulse(-50_000);
  const { status, body } = await ask("/livez");
  expect(status).toBe(503);
  expect(JSON.parse(body)).toMatchObject({
    alive: false,
    overdue: [{ name: "lease", overdueSeconds: expect.any(Number) }],
  });
  expect((await ask("/healthz")).status).toBe(200);
  pulse(1_000);
  expect((await ask("/livez")).status).toBe(200);
});

test("before the start is complete it is not ready, in upstream's words, and tells why when asked for more", async () => {
  const { observation, ask } = setUp();
  expect(await ask("/readyz")).toMatchObject({ status: 503, body: "flanneld is not ready yet" });
  const verbose = await ask("/readyz?verbose");
  expect(verbose.status).toBe(503);
  expect(JSON.parse(verbose.body)).toMatchObject({ ready: false, reasons: [{ code: "STARTING" }] });
  observation.phase = "stopping";
  expect(JSON.parse((await ask("/readyz")).body)).toMatchObject({ reasons: [{ code: "STOPPING" }] });
});

test("status and explain tell what is known already", async () => {
  const { ask } = setUp();
  expect(JSON.parse((await ask("/status")).body)).toMatchObject({
    version: "1.0.0",
    commit: "abc",
    pid: process.pid,
    phase: "starting",
    ready: false,
    subnetFile: "/nonexistent",
  });
  const explained = JSON.parse((await ask("/explain?address=10.5.1.1")).body);
  expect(explained).toMatchObject({
    address: "10.5.1.1",
    scope: "starting",
    ok: false,
    objects: [],
    journal: [],
  });
  for (const path of ["/explain", "/explain?address=x", "/probed", "/probed?key=x"])
    expect((await ask(path)).status).toBe(400);
  const journal = JSON.parse((await ask("/journal")).body);
  expect(journal.entries).toMatchObject([{ kind: "daemon" }]);
});
