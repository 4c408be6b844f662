import { expect, test } from "bun:test";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { keepRunning } from "../../../core/host/child.ts";
import type { Child, ChildSpec, Lasting } from "../../../core/host/child-spec.ts";
import { endLasting, outputOf, removeNote } from "../../../core/host/lasting.ts";
import { findNoted, readNote, startOf } from "../../../core/host/process-note.ts";
import { until } from "../../lab/until.ts";
import { TemporaryFolder } from "./temporary-folder.ts";

/** A place for a note; what was started with it ends with the test. */
class Place implements AsyncDisposable {
  readonly #folder = new TemporaryFolder();
  readonly note = this.#folder.file("note");
  readonly told: string[] = [];
  readonly #children: Child[] = [];

  file(name: string): string {
    return this.#folder.file(name);
  }

  /** What keeps a shell running that prints a line for each SIGUSR1 that it gets. */
  keep(lasting: Partial<Lasting> = {}, more: Partial<ChildSpec> = {}): Child {
    const { told } = this;
    const child = keepRunning({
      ...{ file: "sh", args: ["-c", 'trap "echo heard" USR1; echo up; while :; do sleep 0.05; done'] },
      line: (text) => told.push(text),
      starting: () => told.push("starting"),
      started: (pid) => told.push(`started ${pid}`),
      ended: (how) => told.push(how),
      ...more,
      lasting: {
        ...{ note: this.note, startedWith: "a secret", answers: async () => true },
        adopted: (pid) => told.push(`adopted ${pid}`),
        replaced: (pid, why) => told.push(`replaced ${pid}: ${why}`),
        ...lasting,
      },
    });
    this.#children.push(child);
    return child;
  }

  /** Waits for something to be told. */
  async until(text: string): Promise<void> {
    await until(() => this.told.includes(text), { message: () => `"${text}": ${this.told.join(", ")}` });
  }

  /** The process that runs, once it listens to signals. */
  async up(child: Child): Promise<number> {
    await this.until("up");
    return child.pid ?? 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#children.map((child) => child.leave()));
    await endLasting(this.note);
    this.#folder[Symbol.dispose]();
  }
}

test("it outlives a daemon that is killed, and the next one goes on with it", async () => {
  await using place = new Place();
  const script = place.file("daemon.ts");
  const module = join(import.meta.dir, "../../../core/host/child.ts");
  const spec = `file: "sh", args: ["-c", 'trap "echo heard" USR1; while :; do sleep 0.05; done']`;
  const lasting = `note: ${JSON.stringify(place.note)}, startedWith: "a secret", answers: async () => true`;
  await Bun.write(
    script,
    `import { keepRunning } from ${JSON.stringify(module)};
     keepRunning({ ${spec}, started: (pid) => console.log(pid), lasting: { ${lasting} } });
     setInterval(() => {}, 1000);`,
  );
  const daemon = Bun.spawn([process.execPath, script], { stdout: "pipe", stdin: "ignore" });
  const { value } = await daemon.stdout.getReader().read();
  const pid = Number(new TextDecoder().decode(value));
  daemon.kill("SIGKILL");
  await daemon.exited;
  // A session of its own: nothing that the terminal of the daemon gets comes to it.
  expect(readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ")[3]).toBe(String(pid));
  const child = place.keep({}, { args: ["-c", 'trap "echo heard" USR1; while :; do sleep 0.05; done'] });
  await place.until(`adopted ${pid}`);
  expect([child.pid, findNoted(place.note)]).toEqual([pid, [pid]]);
  process.kill(pid, "SIGUSR1");
  await place.until("heard");
  await child.stop();
  expect(startOf(pid)).toBeUndefined();
  expect(place.told).toEqual([`adopted ${pid}`, "heard"]);
});

test("one that is left goes on, printing to nobody; one that is taken over and ends is told, and started again", async () => {
  await using place = new Place();
  const first = place.keep();
  const pid = await place.up(first);
  await first.leave();
  expect([first.pid, startOf(pid)]).toEqual([undefined, expect.any(String)]);
  place.told.length = 0;
  const second = place.keep();
  await place.until(`adopted ${pid}`);
  process.kill(pid, "SIGKILL");
  await place.until("starting");
  const now = await place.up(second);
  expect(place.told).toEqual([
    `adopted ${pid}`,
    expect.stringContaining("only its parent was told"),
    "starting",
    `started ${now}`,
    "up",
  ]);
  expect(readNote(place.note)?.pid).toBe(now);
  await second.stop();
});

test("one that was started with something else, or does not answer, is killed and started anew", async () => {
  await using place = new Place();
  const first = place.keep();
  let pid = await place.up(first);
  await first.leave();
  const cases: readonly (readonly [string, Partial<Lasting>, Partial<ChildSpec>])[] = [
    ["different", { startedWith: "another secret" }, {}],
    ["silent", { startedWith: "another secret", answers: async () => false }, {}],
    ["silent", { startedWith: "another secret", answers: () => Promise.reject(new Error("no")) }, {}],
    ["different", { startedWith: "another secret" }, { env: { EXTRA: "yes" } }],
  ];
  for (const [why, lasting, more] of cases) {
    // One that hangs is killed as well as any other.
    process.kill(pid, "SIGSTOP");
    place.told.length = 0;
    const child = place.keep(lasting, more);
    const now = await place.up(child);
    expect(place.told).toEqual([`replaced ${pid}: ${why}`, "starting", `started ${now}`, "up"]);
    expect(startOf(pid)).toBeUndefined();
    await child.leave();
    pid = now;
  }
});

test("a note that is damaged costs the process, but nobody else theirs", async () => {
  await using place = new Place();
  await using other = Bun.spawn(["sleep", "1000"], { env: { FLANNEL_PROCESS_NOTE: `${place.note}.other` } });
  const notes = [
    "",
    "{}",
    "null",
    '{"pid":1,"since":"0"}',
    '{"pid":"x"}',
    // The id of a process that was started at another time.
    JSON.stringify({ pid: other.pid, since: "1" }),
  ];
  const first = place.keep();
  const pid = await place.up(first);
  await first.leave();
  for (const text of notes) {
    writeFileSync(place.note, text);
    expect(findNoted(place.note)).toEqual([pid]);
  }
  place.told.length = 0;
  const child = place.keep();
  const now = await place.up(child);
  expect(place.told[0]).toBe(`replaced ${pid}: different`);
  expect(readNote(place.note)?.pid).toBe(now);
  expect(other.exitCode).toBeNull();
  await child.stop();
  removeNote(place.note);
  expect([existsSync(place.note), existsSync(outputOf(place.note))]).toEqual([false, false]);
});

test("what nobody reads neither stops nor ends it, and takes no room", async () => {
  await using place = new Place();
  const args = [
    "-c",
    // A line is 100 bytes; the FIFO holds 64 KiB.
    'trap "echo heard" USR1; i=0; while [ $i -lt 3000 ]; do printf "%099d\\n" $i; i=$((i+1)); done 2>/dev/null; echo up >"$0"; while :; do sleep 0.05; done',
    place.file("done"),
  ];
  const child = place.keep({}, { args });
  await until(() => child.pid !== undefined, { message: "it was started" });
  await child.leave();
  await until(() => existsSync(place.file("done")), { message: "all is printed" });
  place.told.length = 0;
  const next = place.keep({}, { args });
  await place.until(`adopted ${findNoted(place.note)[0]}`);
  process.kill(next.pid ?? 0, "SIGUSR1");
  await place.until("heard");
  expect(place.told.length).toBe(2);
  await next.stop();
});

test("the note is root's alone and tells no secret", async () => {
  await using place = new Place();
  const child = place.keep({ remarks: { table: 55 } });
  await place.up(child);
  expect(statSync(place.note).mode & 0o777).toBe(0o600);
  expect(statSync(outputOf(place.note)).isFIFO()).toBe(true);
  expect(readFileSync(place.note, "utf8")).not.toContain("secret");
  expect(readNote(place.note)?.remarks).toEqual({ table: 55 });
  await child.stop();
});

test("a process that nobody has waited for is no more", async () => {
  const parent = Bun.spawn(["sh", "-c", "sleep 0 & echo $!; exec sleep 1000"], { stdout: "pipe" });
  const { value } = await parent.stdout.getReader().read();
  const pid = Number(new TextDecoder().decode(value));
  await until(() => startOf(pid) === undefined, { message: "it has ended" });
  expect(existsSync(`/proc/${pid}`)).toBe(true);
  expect(startOf(parent.pid)).toBeDefined();
  parent.kill();
  await parent.exited;
});

test("one that cannot be started is told, and tried again", async () => {
  await using place = new Place();
  const child = place.keep({}, { file: "/nonexistent/no-such-daemon" });
  await place.until("exit code 127");
  await child.stop();
  expect(place.told[2]).toContain("/nonexistent/no-such-daemon");
});
