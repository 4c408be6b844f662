import { afterEach, expect, test } from "bun:test";
import { jsonAnswer, type Routes, textAnswer } from "../../../core/observe/answer.ts";
import { Health } from "../../../core/observe/health.ts";
import { serveHealth } from "../../../core/observe/http.ts";
import { listen } from "../../../core/observe/server.ts";
import { freePorts } from "../../lab/ports.ts";
import { until } from "../../lab/until.ts";
import { RecordingLog } from "./recording-log.ts";

const routes: Routes = {
  "/healthz": () => textAnswer("flanneld is running"),
  "/broken": () => {
    throw new Error("no such figure");
  },
  "/search": (search) => jsonAnswer({ a: search.get("a") }, 503),
};

const over: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of over.splice(0)) await end();
});

async function start(address = "127.0.0.1", port?: number) {
  const chosen = port ?? (await freePorts(1))[0]!;
  const controller = new AbortController();
  const log = new RecordingLog();
  const health = new Health(log);
  const done = serveHealth({ address, port: chosen, routes, health, log }, controller.signal);
  over.push(async () => {
    controller.abort();
    await done;
  });
  return { url: `http://127.0.0.1:${chosen}`, port: chosen, health, log, controller, done };
}

const answers = (url: string) =>
  until(async () => (await fetch(url)).ok, { message: `${url} never answered` });

test("routes are answered whatever the method, other paths are 404, a route that throws is 500", async () => {
  const { url } = await start();
  await answers(`${url}/healthz`);
  for (const method of ["GET", "HEAD", "POST", "DELETE", "PROPFIND"]) {
    const response = await fetch(`${url}/healthz`, { method });
    expect([response.status, response.headers.get("content-type")]).toEqual([
      200,
      "text/plain; charset=utf-8",
    ]);
    expect(await response.text()).toBe(method === "HEAD" ? "" : "flanneld is running");
  }
  for (const path of ["/", "/healthz/", "/toString", "/__proto__"])
    expect((await fetch(url + path)).status).toBe(404);
  const broken = await fetch(`${url}/broken`);
  expect([broken.status, await broken.text()]).toEqual([500, "no such figure\n"]);
  const search = await fetch(`${url}/search?a=b%26c`);
  expect([search.status, await search.json()]).toEqual([503, { a: "b&c" }]);
});

test("a busy port is a finding, tried again until it is free", async () => {
  const other = listen({ hostname: "127.0.0.1", port: 0 }, { "/": () => textAnswer("mine") });
  const { url, health, log } = await start("127.0.0.1", other.port);
  await until(() => health.has("HEALTH_PORT_BUSY"), { message: "no finding" });
  expect(health.list()[0]).toMatchObject({
    severity: "error",
    text: `127.0.0.1:${other.port} is in use by another process`,
  });
  expect(await (await fetch(`${url}/`)).text()).toBe("mine");
  await other.stop();
  await answers(`${url}/healthz`);
  expect(health.list()).toEqual([]);
  expect(log.messages("error")).toHaveLength(1);
});

test.each(["192.0.2.77", "localhost", ""])(
  "an address that this host does not have is a finding: %j",
  async (address) => {
    const { health } = await start(address);
    await until(() => health.has("HEALTH_ADDRESS"), { message: "no finding" });
    expect(health.list()[0]?.fix).toContain("-healthz-ip");
  },
);

test("the end is quick, also while a client keeps its connection", async () => {
  const { url, controller, done, port } = await start();
  await answers(`${url}/healthz`);
  const { promise, resolve } = Promise.withResolvers<void>();
  const client = await Bun.connect({
    hostname: "127.0.0.1",
    port,
    socket: { data: () => resolve(), close() {} },
  });
  client.write("GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\n\r\n");
  await promise;
  const started = performance.now();
  controller.abort();
  await done;
  expect(performance.now() - started).toBeLessThan(1_500);
  client.end();
});
