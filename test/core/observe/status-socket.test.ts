import { expect, test } from "bun:test";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { jsonAnswer, textAnswer } from "../../../core/observe/answer.ts";
import { Health } from "../../../core/observe/health.ts";
import { silentLog } from "../../../core/observe/log.ts";
import { askDaemon } from "../../../core/observe/status-client.ts";
import { serveStatus, statusSocketOf } from "../../../core/observe/status-socket.ts";
import { until } from "../../lab/until.ts";

/** A folder with a subnet file's name in it, and what is served beside it. */
class Place implements AsyncDisposable {
  readonly folder = mkdtempSync(join(tmpdir(), "flannel-status-"));
  readonly subnetFile = join(this.folder, "run/subnet.env");
  readonly path = statusSocketOf(this.subnetFile);
  readonly health = new Health(silentLog);
  readonly #running: { controller: AbortController; done: Promise<void> }[] = [];

  serve(name: string): { stop: () => Promise<void> } {
    const controller = new AbortController();
    const routes = {
      "/status": () => jsonAnswer({ name }),
      "/old": () => textAnswer("no such thing\n", 404),
    };
    const input = { path: this.path, routes, health: this.health, lookEvery: 50 };
    const done = serveStatus(input, controller.signal);
    this.#running.push({ controller, done });
    return {
      stop: async () => {
        controller.abort();
        await done;
      },
    };
  }

  answers(name: string): Promise<unknown> {
    return until(async () => Bun.deepEquals(await askDaemon(this.subnetFile, "/status"), { name }), {
      message: `${name} does not answer`,
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { controller, done } of this.#running) {
      controller.abort();
      await done;
    }
    rmSync(this.folder, { recursive: true, force: true });
  }
}

test("the socket is root's alone, answers JSON, and goes with the daemon", async () => {
  await using place = new Place();
  const server = place.serve("one");
  await place.answers("one");
  expect(statSync(place.path).mode & 0o7777).toBe(0o600);
  expect(statSync(join(place.folder, "run")).mode & 0o7777).toBe(0o755);
  await expect(askDaemon(place.subnetFile, "/old")).rejects.toMatchObject({ code: "DAEMON_REFUSED" });
  await server.stop();
  expect(existsSync(place.path)).toBe(false);
  await expect(askDaemon(place.subnetFile, "/status")).rejects.toMatchObject({ code: "DAEMON_NOT_RUNNING" });
});

test("what a crash left is replaced, and a lost one comes back", async () => {
  await using place = new Place();
  const script = `Bun.serve({ unix: process.argv[1], fetch: () => new Response() }); console.log("up")`;
  place.serve("first");
  await place.answers("first");
  await place[Symbol.asyncDispose]();
  await using next = new Place();
  const folder = join(next.folder, "run");
  await Bun.spawn(["mkdir", "-p", folder]).exited;
  const crashed = Bun.spawn([process.execPath, "-e", script, next.path], { stdout: "pipe" });
  await crashed.stdout.getReader().read();
  crashed.kill("SIGKILL");
  await crashed.exited;
  expect(existsSync(next.path)).toBe(true);
  await expect(askDaemon(next.subnetFile, "/status")).rejects.toMatchObject({ code: "DAEMON_NOT_RUNNING" });
  next.serve("second");
  await next.answers("second");
  rmSync(folder, { recursive: true });
  await next.answers("second");
});

test("a second daemon leaves the socket of the first alone, and says so", async () => {
  await using place = new Place();
  place.serve("one");
  await place.answers("one");
  place.serve("two");
  await until(() => place.health.has("STATUS_SOCKET"), { message: "no finding" });
  expect(place.health.list()[0]).toMatchObject({ severity: "warning" });
  await place.answers("one");
});

test("a file in the way is not removed", async () => {
  await using place = new Place();
  await Bun.spawn(["mkdir", "-p", join(place.folder, "run")]).exited;
  writeFileSync(place.path, "precious");
  place.serve("one");
  await until(() => place.health.has("STATUS_SOCKET"), { message: "no finding" });
  expect(readFileSync(place.path, "utf8")).toBe("precious");
  rmSync(place.path);
  await place.answers("one");
  expect(place.health.list()).toEqual([]);
});

test("a path that is too long for a socket is a finding", async () => {
  await using place = new Place();
  const controller = new AbortController();
  const path = join(place.folder, "x".repeat(150));
  const done = serveStatus({ path, routes: {}, health: place.health }, controller.signal);
  await until(() => place.health.has("STATUS_SOCKET"), { message: "no finding" });
  expect(place.health.list()[0]?.text).toContain("too long");
  controller.abort();
  await done;
});
