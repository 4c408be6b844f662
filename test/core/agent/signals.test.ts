import { expect, test } from "bun:test";

const module = new URL("../../../core/agent/signals.ts", import.meta.url).pathname;
const exec = new URL("../../../core/host/exec.ts", import.meta.url).pathname;
const observe = new URL("../observe/recording-log.ts", import.meta.url).pathname;
const script = `
  import { stopOnSignal } from ${JSON.stringify(module)};
  import { RecordingLog } from ${JSON.stringify(observe)};
  const log = new RecordingLog();
  const signal = stopOnSignal(log);
  const alive = setInterval(() => {}, 1_000);
  signal.addEventListener("abort", () => {
    console.log(log.messages().join("|"));
    if (process.env.LEAVE === "1") clearInterval(alive);
  });
  if (process.env.COMMAND === "1") {
    const { run } = await import(${JSON.stringify(exec)});
    run("sleep", ["5"]).catch(() => {});
    const children = "/proc/self/task/" + process.pid + "/children";
    while ((await Bun.file(children).text()) === "") await Bun.sleep(5);
    signal.addEventListener("abort", () => setTimeout(() => process.exit(0), 50));
  }
  console.log("ready");
`;

/** A process that waits for its stop, and the lines it prints. */
function start(env: Readonly<Record<string, string>> = {}) {
  const child = Bun.spawn([process.execPath, "-e", script], {
    env: { ...process.env, ...env },
    stdout: "pipe",
    stderr: "inherit",
  });
  const reader = child.stdout.getReader();
  return { child, line: async () => new TextDecoder().decode((await reader.read()).value).trim() };
}

test.each(["SIGTERM", "SIGINT"] as const)(
  "%s aborts once, and the process may end in its own time",
  async (name) => {
    const { child, line } = start({ LEAVE: "1" });
    expect(await line()).toBe("ready");
    child.kill(name);
    expect(await line()).toBe(`${name} received, stopping; the data plane stays`);
    expect(await child.exited).toBe(0);
  },
);

test("a second signal ends the process at once", async () => {
  const { child, line } = start();
  expect(await line()).toBe("ready");
  child.kill("SIGTERM");
  await line();
  child.kill("SIGINT");
  await child.exited;
  expect(child.signalCode).toBe("SIGINT");
});

test("a signal while a command runs is no other one: execa listens to signals, too", async () => {
  const { child, line } = start({ COMMAND: "1" });
  expect(await line()).toBe("ready");
  child.kill("SIGTERM");
  expect(await line()).toBe("SIGTERM received, stopping; the data plane stays");
  expect({ code: await child.exited, signal: child.signalCode }).toEqual({ code: 0, signal: null });
});
