import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "../until.ts";
import { parseOptions, UsageError } from "./options.ts";
import { renderTable } from "./table.ts";

const TIMEOUT = 60_000;
let directory: string;

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "demo-test-"));
});

afterAll(() => {
  rmSync(directory, { recursive: true, force: true });
});

/** Runs the demo as `npm run demo` does, with its state kept apart from a person's demos. */
function startDemo(args: readonly string[], env: Record<string, string> = {}) {
  return Bun.spawn([process.execPath, join(import.meta.dir, "../demo.ts"), ...args], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    env: { ...process.env, FLANNEL_DEMO_STATE: join(directory, "state"), ...env },
  });
}

async function runDemo(args: readonly string[], env: Record<string, string> = {}) {
  const child = startDemo(args, env);
  const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { pid: child.pid, stdout, stderr, code };
}

function namespacesOf(pid: number): string[] {
  return existsSync("/run/netns")
    ? readdirSync("/run/netns").filter((name) => name.startsWith(`fl${pid}-`))
    : [];
}

function executable(body: string): string {
  const file = join(directory, `stand-in-${Bun.hash(body)}`);
  writeFileSync(file, `#!/bin/sh\n${body}\n`);
  chmodSync(file, 0o755);
  return file;
}

describe("arguments", () => {
  test("defaults and choices", () => {
    expect(parseOptions([])).toMatchObject({ hosts: 3, backend: "vxlan", family: "v4", keep: false });
    expect(parseOptions(["--hosts=5", "--backend", "host-gw", "--family", "dual", "--keep"])).toMatchObject({
      hosts: 5,
      backend: "host-gw",
      family: "dual",
      keep: true,
    });
  });

  for (const args of [
    ["--hosts", "1"],
    ["--hosts", "3x"],
    ["--backend", "vlan"],
    ["--wait"],
    ["now"],
    ["--hosts"],
  ]) {
    test(`${args.join(" ")} is refused`, () => {
      expect(() => parseOptions(args)).toThrow(UsageError);
    });
  }

  test("a wrong argument and a missing executable each end with 1 and say what to do", async () => {
    const wrong = await runDemo(["--backend", "vlan"]);
    expect([wrong.code, wrong.stderr]).toEqual([
      1,
      'demo: --backend is vxlan or host-gw, not "vlan"\nTry: npm run demo -- --help\n',
    ]);
    const missing = await runDemo([], { FLANNELD: "/nowhere/flanneld" });
    expect(missing.code).toBe(1);
    expect(missing.stderr).toContain("no executable at /nowhere/flanneld; npm run build makes it");
  });
});

test("a table aligns words left, numbers right, and takes cells of several lines", () => {
  expect(
    renderTable([
      ["host", "MTU"],
      ["h1\nh1b", "9000"],
      ["long-name", "50"],
    ]).split("\n"),
  ).toEqual([
    "┌───────────┬──────┐",
    "│ host      │ MTU  │",
    "├───────────┼──────┤",
    "│ h1        │ 9000 │",
    "│ h1b       │      │",
    "│ long-name │   50 │",
    "└───────────┴──────┘",
  ]);
});

describe("runs", () => {
  test(
    "kept: every pair answered, the printed commands work, the teardown leaves nothing",
    async () => {
      const kept = await runDemo(["--hosts", "2", "--keep"]);
      expect(kept.stderr).toBe("");
      expect(kept.code).toBe(0);
      expect(kept.stdout).toContain("2 of 2 pairs answered");
      expect(namespacesOf(kept.pid)).toHaveLength(5);
      const [, pinging = ""] = /^ {2}(ip netns exec \S+ ping \S+)$/m.exec(kept.stdout) ?? [];
      expect(Bun.spawnSync([...pinging.split(" "), "-c", "1"]).exitCode).toBe(0);

      const removed = await runDemo(["--teardown"]);
      expect(removed.stdout).toBe(`demo ${kept.pid}: ended 3 processes, removed 5 namespaces\n`);
      expect(namespacesOf(kept.pid)).toEqual([]);
      expect((await runDemo(["--teardown"])).stdout).toBe("nothing is left standing\n");
    },
    TIMEOUT,
  );

  test(
    "a daemon that fails ends it with 1, its last words and nothing left",
    async () => {
      const FLANNELD = executable(`echo '{"level":"error","msg":"cannot go on"}' >&2; exit 3`);
      const failed = await runDemo(["--hosts", "2"], { FLANNELD });
      expect(failed.code).toBe(1);
      expect(failed.stderr).toMatch(/h\d: the daemon ended \(code 3\)\n.*cannot go on/);
      expect(namespacesOf(failed.pid)).toEqual([]);
    },
    TIMEOUT,
  );

  test(
    "SIGINT ends it with 130 and nothing left",
    async () => {
      const started = mkdtempSync(join(directory, "started-"));
      const FLANNELD = executable(`trap 'exit 0' TERM; touch ${started}/$$; while :; do sleep 0.02; done`);
      const child = startDemo(["--hosts", "2"], { FLANNELD });
      await until(() => readdirSync(started).length === 2, {
        message: "the daemons started",
        deadline: 20_000,
      });
      child.kill("SIGINT");
      expect(await child.exited).toBe(130);
      const output = await child.stdout.text();
      expect(output).toContain("interrupted: cleaning up");
      expect(output).toContain("2 of 2 with exit code 0");
      expect(namespacesOf(child.pid)).toEqual([]);
    },
    TIMEOUT,
  );

  test(
    "the teardown leaves a process alone that only has the pid of one of ours",
    async () => {
      await using bystander = new AsyncDisposableStack();
      const child = bystander.adopt(Bun.spawn(["sleep", "60"]), async (process) => {
        process.kill();
        await process.exited;
      });
      const state = join(directory, "state", "1.json");
      await Bun.write(
        state,
        JSON.stringify({
          owner: { pid: 4_194_305, startTime: "1" },
          namespaces: [],
          processes: [{ pid: child.pid, startTime: "1" }],
          directories: [],
        }),
      );
      expect((await runDemo(["--teardown"])).stdout).toContain("ended 0 processes");
      expect(existsSync(state)).toBe(false);
      expect(child.exitCode).toBeNull();
    },
    TIMEOUT,
  );
});
