import { expect, test } from "bun:test";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { holdLock, lockFileOf, lockHolder } from "../../../core/host/lock.ts";
import { until } from "../../lab/until.ts";
import { TemporaryFolder } from "./temporary-folder.ts";

const MODULE = join(import.meta.dir, "../../../core/host/lock.ts");

/** Another process that holds the lock of a subnet file. */
async function otherHolder(subnetFile: string, env: Record<string, string> = {}) {
  const code = `const { holdLock } = await import(${JSON.stringify(MODULE)});
    const lock = holdLock(${JSON.stringify(subnetFile)}); console.log("held"); setInterval(() => lock, 1000);`;
  const child = Bun.spawn([process.execPath, "-e", code], {
    stdout: "pipe",
    env: { ...process.env, ...env },
  });
  const { value } = await child.stdout.getReader().read();
  expect(new TextDecoder().decode(value)).toBe("held\n");
  return {
    pid: child.pid,
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}

test("one process at a time, and the other one is named", async () => {
  using folder = new TemporaryFolder();
  const file = join(folder.path, "run/flannel/subnet.env");
  expect(lockHolder(file)).toBeUndefined();
  {
    await using other = await otherHolder(file);
    expect(lockHolder(file)).toBe(other.pid);
    expect(() => holdLock(file)).toThrow(
      expect.objectContaining({
        code: "ALREADY_RUNNING",
        message: expect.stringContaining(`flanneld with pid ${other.pid}`),
      }),
    );
    using _own = holdLock(join(folder.path, "another.env"));
  }
  // A killed one holds it no longer, although its pid is still in the file.
  expect(lockHolder(file)).toBeUndefined();
  using _lock = holdLock(file);
  expect(readFileSync(lockFileOf(file), "utf8")).toBe(`${process.pid}\n`);
});

test("it ends with the returned value, and no child inherits it", async () => {
  using folder = new TemporaryFolder();
  const file = join(folder.path, "subnet.env");
  const lock = holdLock(file);
  const child = Bun.spawn(["sleep", "60"]);
  lock[Symbol.dispose]();
  // Between fork and exec the child has a copy for a moment.
  await until(() => lockHolder(file) === undefined, { message: "the child holds the lock", deadline: 5_000 });
  child.kill("SIGKILL");
  await child.exited;
});

test("a removed lock file is made again", () => {
  using folder = new TemporaryFolder();
  const file = join(folder.path, "subnet.env");
  {
    using _first = holdLock(file);
    rmSync(lockFileOf(file));
  }
  using _second = holdLock(file);
  expect(existsSync(lockFileOf(file))).toBe(true);
});

test("without foreign functions the pid decides", async () => {
  using folder = new TemporaryFolder();
  const file = join(folder.path, "subnet.env");
  const noJit = { BUN_JSC_useJIT: "0" };
  const ask = async () => {
    const code = `const { lockHolder } = await import(${JSON.stringify(MODULE)}); console.log(lockHolder(${JSON.stringify(file)}));`;
    const child = Bun.spawn([process.execPath, "-e", code], {
      stdout: "pipe",
      env: { ...process.env, ...noJit },
    });
    return (await new Response(child.stdout).text()).trim();
  };
  {
    await using other = await otherHolder(file, noJit);
    expect(await ask()).toBe(String(other.pid));
  }
  await until(async () => (await ask()) === "undefined", { message: "a dead process still holds it" });
  writeFileSync(lockFileOf(file), "1\n");
  expect(await ask()).toBe("undefined");
});
