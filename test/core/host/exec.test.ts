import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
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

test("a command in a group of its own is over when it ends, whoever has its outputs open", async () => {
  const script = "echo $$; (sleep 0.3; echo late; exec sleep 300) & echo $!; echo why >&2; exit $CODE";
  const begun = performance.now();
  const within = (CODE: string) => run("sh", ["-c", script], { group: true, timeout: 60_000, env: { CODE } });
  const { stdout } = await within("0");
  const failed = await within("3").catch((error) => error);
  expect(failed).toMatchObject({
    code: "EXEC_FAILED",
    message: expect.stringContaining("ended with 3: why"),
  });
  expect(performance.now() - begun).toBeLessThan(10_000);
  for (const text of [stdout, failed.cause.stdout]) {
    expect(text).toMatch(/^\d+\n\d+\n$/);
    const pid = Number(text.split("\n")[1]);
    // It may go on and print without being killed for that.
    await until(() => readFileSync(`/proc/${pid}/cmdline`, "utf8").startsWith("sleep"), {
      message: `${pid} has printed and is now another program`,
    });
    process.kill(pid);
  }
});

test("a command in a group of its own that prints without end is kept within bounds", async () => {
  const script = "head -c 3000000 /dev/zero; echo end >&2";
  const { stdout, stderr } = await run("sh", ["-c", script], { group: true });
  expect([stdout.length > 900_000, stdout.length <= 1024 * 1024, stderr]).toEqual([true, true, "end\n"]);
});

test("a command in a group of its own that is not installed, or may not be run", async () => {
  const refusal = (file: string) => run(file, [], { group: true }).catch((error) => error.code);
  expect(await Promise.all([refusal("no-such-command-here"), refusal("/etc/passwd")])).toEqual([
    "EXEC_MISSING",
    "EXEC_FAILED",
  ]);
});
