import { expect, test } from "bun:test";
import { copyFileSync } from "node:fs";
import { findDaemons } from "../../../core/host/running.ts";
import { Namespace } from "../../lab/namespace.ts";
import { until } from "../../lab/until.ts";
import { TemporaryFolder } from "./temporary-folder.ts";

/** Something that runs under the name of the daemon. */
function impostor(folder: TemporaryFolder, args: readonly string[], inside: readonly string[] = []) {
  const child = Bun.spawn([...inside, folder.file("flanneld"), ...args], { stderr: "ignore" });
  return {
    pid: child.pid,
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}

test("a process of that name in our network namespace, which is no mere command", async () => {
  using folder = new TemporaryFolder();
  copyFileSync("/bin/sleep", folder.file("flanneld"));
  await using ns = await Namespace.create("running");
  {
    // `sleep --help` ends at once; a duration of digits is an operand, as a command would be.
    await using command = impostor(folder, ["60"]);
    expect(findDaemons()).not.toContain(command.pid);
  }
  await using daemon = impostor(folder, ["--", "60"]);
  await until(() => findDaemons().includes(daemon.pid), { message: "the daemon is not found" });
  await using elsewhere = impostor(folder, ["--", "60"], ["ip", "netns", "exec", ns.name]);
  await until(async () => (await ns.pids()).includes(elsewhere.pid), { message: "not inside" });
  expect(findDaemons()).not.toContain(elsewhere.pid);
});
