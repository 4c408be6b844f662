import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { keepRunning } from "../../../core/host/child.ts";
import { until } from "../../lab/until.ts";
import { TemporaryFolder } from "./temporary-folder.ts";

const alive = (pid: number) => existsSync(`/proc/${pid}`);

test("a process that ends is started again after a pause, and what it prints is told line by line", async () => {
  const told: string[] = [];
  const child = keepRunning({
    file: "sh",
    args: ["-c", "echo one; echo two >&2; echo $EXTRA; exit 3"],
    env: { EXTRA: "yes" },
    line: (text) => told.push(text),
    ended: (how) => told.push(how),
  });
  try {
    await until(() => told.filter((text) => text === "exit code 3").length === 2, { message: "two runs" });
  } finally {
    await child.stop();
  }
  expect([...told.slice(0, 3)].sort()).toEqual(["one", "two", "yes"]);
  expect(told[3]).toBe("exit code 3");
});

test("a process is ended for good, by force when it will not go", async () => {
  let pid = 0;
  let ends = 0;
  const child = keepRunning({
    file: "sh",
    args: ["-c", "trap '' TERM; while :; do sleep 0.1; done"],
    started: (started) => {
      pid = started;
    },
    ended: () => {
      ends += 1;
    },
  });
  await until(() => pid > 0, { message: "it runs" });
  expect(child.pid).toBe(pid);
  await child.stop();
  expect([alive(pid), child.pid, ends]).toEqual([false, undefined, 0]);
});

test("a file that does not exist is told, and tried again", async () => {
  const told: string[] = [];
  const child = keepRunning({ file: "/nonexistent/no-such-daemon", ended: (how) => told.push(how) });
  await until(() => told.length > 0, { message: "it is told" });
  await child.stop();
  expect(told[0]).toMatch(/no-such-daemon|127/);
});

test("a child is killed with its parent, however that dies", async () => {
  using folder = new TemporaryFolder();
  const script = folder.file("parent.ts");
  const module = join(import.meta.dir, "../../../core/host/child.ts");
  await Bun.write(
    script,
    `import { keepRunning } from ${JSON.stringify(module)};
     keepRunning({ file: "sleep", args: ["1000"], started: (pid) => console.log(pid) });`,
  );
  const parent = Bun.spawn([process.execPath, script], { stdout: "pipe", stdin: "ignore" });
  const { value } = await parent.stdout.getReader().read();
  const pid = Number(new TextDecoder().decode(value));
  expect(alive(pid)).toBe(true);
  parent.kill("SIGKILL");
  await parent.exited;
  await until(() => !alive(pid), { message: `process ${pid} is gone` });
});
