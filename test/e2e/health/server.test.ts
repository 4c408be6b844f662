/**
 * The health server: what it answers while the daemon runs, while it starts, and where it cannot listen.
 *
 *   h1 (flanneld, health server) ── ext0 ─┬─ switch + etcd
 *   h2 (daemons that start) ──────── ext0 ┘
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { parseExposition } from "../../core/observe/exposition.ts";
import { Cluster, networkConfig } from "../../lab/cluster.ts";
import { executable } from "../../lab/daemon.ts";
import type { Host } from "../../lab/host.ts";
import { until } from "../../lab/until.ts";
import { askHttp } from "../ask.ts";
import { HEALTH_FLAG, TIMEOUT } from "./readiness.ts";

let cluster: Cluster;
let [h1, h2]: Host[] = [];
let blocker: ReturnType<Host["namespace"]["spawn"]> | undefined;

beforeAll(async () => {
  cluster = await Cluster.create({ hosts: 2 });
  [h1, h2] = cluster.hosts;
  await cluster.startDaemon(h1!, { flags: [HEALTH_FLAG] }).ready;
}, TIMEOUT);
afterAll(() => cluster?.[Symbol.asyncDispose]());

describe("the health server", () => {
  test("answers upstream's words on upstream's paths, whatever the method", async () => {
    for (const method of ["GET", "POST", "PUT"]) {
      expect(await askHttp(h1!, "/healthz", { method })).toMatchObject({
        status: 200,
        body: "flanneld is running",
      });
    }
    expect(await askHttp(h1!, "/readyz")).toMatchObject({ status: 200, body: "flanneld is ready" });
    expect(await askHttp(h1!, "/livez")).toMatchObject({ status: 200, body: "flanneld is alive" });
    expect(await askHttp(h1!, "/")).toMatchObject({ status: 404 });
    const verbose = await askHttp(h1!, "/readyz?verbose");
    expect(JSON.parse(verbose.body)).toEqual({ ready: true, reasons: [] });
  });

  test(
    "says why it is not ready while it starts",
    async () => {
      const flags = [
        "--etcd-prefix=/later",
        "--healthz-port=8090",
        "--subnet-file",
        `${h2!.directory}/later.env`,
      ];
      await using starting = cluster.startDaemon(h2!, { flags });
      await starting.waitForLog(({ code }) => code === "CONFIG_MISSING");
      const ask = (path: string) => askHttp(h2!, path, { port: 8090 });
      expect(await ask("/healthz")).toMatchObject({ status: 200 });
      expect(await ask("/readyz")).toMatchObject({ status: 503, body: "flanneld is not ready yet" });
      const { body } = await ask("/readyz?verbose");
      expect(JSON.parse(body).reasons.map(({ code }: { code: string }) => code)).toEqual([
        "CONFIG_MISSING",
        "STARTING",
      ]);
      parseExposition((await ask("/metrics")).body);
      expect(await starting.stop()).toMatchObject({ code: 0 });
    },
    TIMEOUT,
  );

  test.each<[what: string, code: string, flags: string[], hinder: () => unknown, mend: () => unknown]>([
    [
      "a busy port",
      "HEALTH_PORT_BUSY",
      ["--healthz-port=8091"],
      async () => {
        blocker = h2!.namespace.spawn("socat", "TCP4-LISTEN:8091,reuseaddr,fork", "EXEC:true");
        const listens = () => h2!.namespace.exec("sh", "-ec", "ss -ltn | grep -q ':8091 '");
        await until(async () => (await listens()) === "", { message: "socat does not listen" });
      },
      async () => {
        blocker?.kill();
        await blocker?.exited;
      },
    ],
    [
      "an address of another host",
      "HEALTH_ADDRESS",
      ["--healthz-port=8091", "--healthz-ip=192.0.2.62"],
      () => {},
      () => h2!.namespace.ip("address add 192.0.2.62/32 dev lo"),
    ],
  ])(
    "%s is a finding, %s, and no end; it is served as soon as that can be",
    async (_, code, flags, hinder, mend) => {
      await hinder();
      const file = `${h2!.directory}/${code}.env`;
      await cluster.etcd.ctl("put", "/alloc/config", JSON.stringify(networkConfig("v4", { Type: "alloc" })));
      await using hindered = cluster.startDaemon(h2!, {
        flags: [...flags, "--subnet-file", file, "--etcd-prefix=/alloc"],
      });
      await hindered.ready;
      await hindered.waitForLog((line) => line.code === code);
      const status = () => h2!.namespace.run([executable(), "status", "--subnet-file", file]);
      const { exitCode, stdout } = await status();
      expect(exitCode).toBe(1);
      expect(stdout).toContain(`not ready: ${code}`);
      await mend();
      await until(async () => (await status()).exitCode === 0, {
        message: () => `the port is never served\n${hindered.tail()}`,
        deadline: 20_000,
      });
      const address = flags[1]?.split("=")[1] ?? "127.0.0.1";
      expect(await askHttp(h2!, "/readyz", { port: 8091, address })).toMatchObject({ status: 200 });
      const end = await hindered.stop();
      expect(end.code).toBe(0);
      expect(end.milliseconds).toBeLessThan(2_000);
    },
    TIMEOUT,
  );
});
