import { expect, test } from "bun:test";
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { SubnetFileGuard } from "../../../core/agent/subnet-file-guard.ts";
import { renderSubnetFile } from "../../../core/host/subnet-file.ts";
import { Health } from "../../../core/observe/health.ts";
import { until } from "../../lab/until.ts";
import { TemporaryFolder } from "../host/temporary-folder.ts";
import { RecordingLog } from "../observe/recording-log.ts";

const content = {
  networks: { ipv4: "10.5.0.0/16" },
  subnets: { ipv4: "10.5.1.0/24" },
  mtu: 1450,
  ipMasq: false,
};

function setUp() {
  const folder = new TemporaryFolder();
  const path = folder.file("run", "subnet.env");
  const log = new RecordingLog();
  const health = new Health(log);
  const guard = new SubnetFileGuard(path, log, health);
  const controller = new AbortController();
  let keeping: Promise<void> | undefined;
  return {
    folder,
    path,
    log,
    health,
    guard,
    keep: () => {
      keeping = guard.keep(controller.signal, () => {});
    },
    async [Symbol.asyncDispose]() {
      using _ = folder;
      controller.abort();
      await keeping;
    },
  };
}

const text = (path: string) => {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
};

test("writes the file and says so; the same content again is no write", async () => {
  await using state = setUp();
  const { guard, path, log } = state;
  guard.set(content);
  expect(text(path)).toBe(renderSubnetFile(content));
  const { ino } = statSync(path);
  guard.set(content);
  expect(statSync(path).ino).toBe(ino);
  expect(log.messages()).toEqual([`wrote ${path}`]);
});

test("a changed MTU is written; before there is any content nothing is", async () => {
  await using state = setUp();
  const { guard, path } = state;
  guard.setMtu(1400);
  expect(text(path)).toBeUndefined();
  guard.set(content);
  guard.setMtu(1400);
  expect(text(path)).toBe(renderSubnetFile({ ...content, mtu: 1400 }));
});

test("a deleted, changed or emptied file is put back", async () => {
  await using state = setUp();
  const { guard, path, log, keep } = state;
  guard.set(content);
  keep();
  const whole = renderSubnetFile(content);
  const harm = [
    () => rmSync(path),
    () => writeFileSync(path, "FLANNEL_MTU=9\n"),
    () => writeFileSync(path, ""),
  ];
  for (const [round, damage] of harm.entries()) {
    damage();
    await until(() => log.messages("warn").length === round + 1, { message: "the line", deadline: 5_000 });
    expect(text(path)).toBe(whole);
  }
  expect(log.messages("warn")[0]).toBe(`wrote ${path} again: it was deleted or changed`);
});

test("what cannot be written is a finding, and over when it can be", async () => {
  await using state = setUp();
  const { guard, path, health } = state;
  mkdirSync(path, { recursive: true });
  guard.set(content);
  expect(health.list()).toMatchObject([{ code: "SUBNET_FILE", text: expect.stringContaining(path) }]);
  rmSync(path, { recursive: true });
  guard.set(content);
  expect(health.list()).toEqual([]);
  expect(text(path)).toBe(renderSubnetFile(content));
});
