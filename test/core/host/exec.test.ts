import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { run } from "../../../core/host/exec.ts";
import { until } from "../../lab/until.ts";

test("hands arguments over as they are: there is no shell", async () => {
  const { stdout } = await run("printf", ["%s|", "$HOME", "a b", "; echo no", "*", ""]);
  expect(stdout).toBe("$HOME|a b|; echo no|*||");
});

test("gives input, environment and both outputs, byte for byte", async () => {
  const script = 'cat; printf %s "$EXTRA" >&2';
  expect(await run("sh", ["-c", script], { input: "in\n\n", env: { EXTRA: "yes" } })).toEqual({
    stdout: "in\n\n",
    stderr: "yes",
  });
});

test("reads nothing from our own input", async () => {
  expect((await run("cat", [])).stdout).toBe("");
});

test("a command that is not installed", async () => {
  expect(run("no-such-command-here", [])).rejects.toMatchObject({
    code: "EXEC_MISSING",
    message: expect.stringContaining('"no-such-command-here"'),
    hint: expect.stringContaining("Install"),
  });
});

test("a command that fails, with its own first line", async () => {
  expect(run("sh", ["-c", "echo why >&2; echo more >&2; exit 3"])).rejects.toMatchObject({
    code: "EXEC_FAILED",
    message: '"sh -c echo why >&2; echo more >&2; exit 3" ended with 3: why',
  });
});

test("a command that does not end is killed", async () => {
  const before = performance.now();
  const failed = await run("sleep", ["60"], { timeout: 100 }).catch((error) => error);
  expect(failed).toMatchObject({ code: "EXEC_TIMEOUT", message: '"sleep" did not finish within 100 ms' });
  expect(performance.now() - before).toBeLessThan(10_000);
});

test("a command in a group of its own is ended with what it started", async () => {
  const script = "sleep 300 & echo $!; wait; echo never";
  const failed = await run("sh", ["-c", script], { timeout: 200, group: true }).catch((error) => error);
  expect(failed).toMatchObject({ code: "EXEC_TIMEOUT" });
  const child = Number(/\d+/.exec(failed.cause?.stdout ?? "")?.[0]);
  expect(child).toBeGreaterThan(1);
  await until(() => !existsSync(`/proc/${child}`), { message: `${child} is gone` });
});

test("a command in a group of its own that ends in time leaves what it meant to leave", async () => {
  const { stdout } = await run("sh", ["-c", "sleep 5 >/dev/null 2>&1 & echo $!"], {
    timeout: 60_000,
    group: true,
  });
  expect(existsSync(`/proc/${Number(stdout)}`)).toBe(true);
  process.kill(Number(stdout));
});
