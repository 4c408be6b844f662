import { expect, test } from "bun:test";
import { run } from "../../../core/host/exec.ts";

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
