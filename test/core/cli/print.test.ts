import { expect, test } from "bun:test";
import { join } from "node:path";

const MODULE = join(import.meta.dir, "../../../core/cli/print.ts");
const CODE = `const { print } = await import(${JSON.stringify(MODULE)}); print("ä".repeat(1_000_000)); process.exit(3);`;

test("everything reaches a reader that is slow, although the process exits at once", async () => {
  const child = Bun.spawn(["sh", "-c", '"$0" -e "$1" | { sleep 0.3; wc -c; }', process.execPath, CODE], {
    stdout: "pipe",
  });
  expect((await new Response(child.stdout).text()).trim()).toBe("2000000");
});

test("a reader that goes away is no error", async () => {
  const script = '{ "$0" -e "$1"; echo "code $?" >&2; } | head -c 10 | wc -c';
  const child = Bun.spawn(["sh", "-c", script, process.execPath, CODE], { stdout: "pipe", stderr: "pipe" });
  const [stdout, stderr] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  expect(stdout.trim()).toBe("10");
  expect(stderr).toBe("code 3\n");
});
