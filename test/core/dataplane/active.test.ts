import { describe, expect, test } from "bun:test";
import type { SyncReport } from "flannel/sdk";
import type { Finding } from "../../../core/observe/finding.ts";
import { until } from "../../lab/until.ts";
import { peer, setUp } from "./active-backend.ts";

test("leads a backend through its life", async () => {
  await using active = setUp();
  expect(await active.driver.prepare()).toEqual({ backendType: "active" });
  expect(await active.driver.attach({ subnets: { ipv4: "10.5.1.0/24" } })).toBe(1400);
  await active.update({ added: [peer("a"), peer("b")] });
  await active.update({ changed: [peer("a")], removed: ["b"] });
  await active.driver.stop();
  await active.driver.abandon();
  expect(active.calls).toEqual(["prepare on eth0", "attach 10.5.1.0/24", "stop", "cleanup false"]);
  expect(active.syncs).toEqual([
    { peers: ["a", "b"], delta: { added: ["a", "b"], changed: [], removed: [] } },
    { peers: ["a"], delta: { added: [], changed: ["a"], removed: ["b"] } },
  ]);
});

describe("a sync that fails", () => {
  const refusal: SyncReport = { failed: [{ key: "a", reason: "the API said no" }] };

  test("is a finding, tried again soon, with all that changed since the last success", async () => {
    let answers = [refusal, refusal];
    await using active = setUp(() => answers.shift() ?? { failed: [] });
    active.run();
    await active.update({ added: [peer("a")] });
    expect(active.health.list().map((finding) => finding.text)).toEqual([
      "1 of 1; first: a: the API said no",
    ]);
    await active.update({ added: [peer("b")] });
    expect(active.syncs.at(-1)?.delta).toEqual({ added: ["a", "b"], changed: [], removed: [] });
    await until(() => active.health.list().length === 0, { message: "a sync that succeeds" });
    expect(active.syncs.at(-1)?.delta.added).toEqual(["a", "b"]);
    answers = [];
    await active.update({ removed: ["a"] });
    expect(active.syncs.at(-1)).toEqual({ peers: ["b"], delta: { added: [], changed: [], removed: ["a"] } });
    expect(active.log.messages("error")).toHaveLength(2);
  });

  test("by throwing is a finding too, not the daemon's end", async () => {
    await using active = setUp(() => Promise.reject(new Error("socket closed")));
    await active.update({ added: [peer("a")] });
    expect(active.health.list()[0]).toMatchObject({
      code: "DATAPLANE_REFUSED",
      text: "socket closed",
    });
  });

  test("by not answering is cut off, and the next update is not stuck behind it", async () => {
    let hang = true;
    await using active = setUp(() => (hang ? new Promise<SyncReport>(() => {}) : { failed: [] }));
    await active.update({ added: [peer("a")] });
    expect(active.health.list()[0]?.text).toContain("500 ms");
    hang = false;
    active.run();
    await active.update({ added: [peer("b")] });
  });

  test("over and over is not hammered", async () => {
    await using active = setUp(() => refusal);
    active.run();
    await active.update({ added: [peer("a")] });
    await until(() => active.syncs.length >= 2, { message: "a second try" });
    expect(active.log.messages("error")).toHaveLength(1);
    await Bun.sleep(300);
    expect(active.syncs.length).toBeLessThan(4);
  });
});

test("two updates never run into each other", async () => {
  let busy = 0;
  let most = 0;
  await using active = setUp(async () => {
    most = Math.max(most, ++busy);
    await Bun.sleep(5);
    busy--;
    return { failed: [] };
  });
  await Promise.all(["a", "b", "c"].map((key) => active.update({ added: [peer(key)] })));
  expect([most, active.syncs.length]).toEqual([1, 3]);
});

test("what the backend finds is shown, and is over when it does not find it any more", async () => {
  const port: Finding = { code: "PORT_BUSY", severity: "warning", title: "t", text: "u", fix: "f" };
  let looks = 0;
  await using active = setUp(
    () => ({ failed: [{ key: "a", reason: "no" }] }),
    () => {
      if (++looks > 1) throw new Error("health broke");
      return [port];
    },
  );
  active.run();
  // Failing syncs make the loop look more often than once a minute.
  await active.update({ added: [peer("a")] });
  const codes = () => active.health.list().map((finding) => finding.code);
  await until(() => codes().includes("PORT_BUSY"), { message: "the finding" });
  await until(() => codes().includes("BACKEND_HEALTH"), { message: "that it cannot tell" });
  expect(codes()).not.toContain("PORT_BUSY");
});

test("an answer that is no list of findings is told, and keeps no peer from being programmed", async () => {
  const answers = [{ code: "PORT_BUSY" }, [null], [{ code: "PORT_BUSY", severity: "error" }]];
  for (const answer of answers) {
    await using active = setUp(
      () => ({ failed: [] }),
      () => answer as never,
    );
    await active.update({ added: [peer("a")] });
    expect(active.health.list().map(({ code }) => code)).toEqual(["BACKEND_HEALTH"]);
  }
});

test("peers that cannot be reached as they are make a finding of their own, and no retries", async () => {
  const report = { failed: [], unusable: [{ key: "b", reason: "uses another backend" }] };
  let unusable = true;
  await using active = setUp(() => (unusable ? report : { failed: [] }));
  await active.update({ added: [peer("a"), peer("b")] });
  await until(() => active.health.has("PEER_UNUSABLE"), { message: "the finding" });
  expect(active.health.list().map(({ code }) => code)).toEqual(["PEER_UNUSABLE"]);
  expect(active.driver.describe("b").problems).toEqual(["uses another backend"]);
  expect(active.driver.counts()).toMatchObject({
    wanted: 2,
    programmed: 1,
    unusable: 1,
    refused: 0,
    failing: 0,
  });
  unusable = false;
  await active.update({ changed: [peer("b")] });
  await until(() => !active.health.has("PEER_UNUSABLE"), { message: "it is over" });
});

test("the backend may ask for a sync, and is not obeyed more often than every half second", async () => {
  await using active = setUp();
  await active.driver.prepare();
  active.run();
  active.wake();
  await until(() => active.syncs.length === 1, { message: "a sync" });
  const begun = performance.now();
  for (let turn = 0; turn < 5; turn++) active.wake();
  await until(() => active.syncs.length === 2, { message: "another one" });
  expect(performance.now() - begun).toBeGreaterThan(300);
  for (let turn = 0; turn < 5; turn++) active.wake();
  await until(() => active.syncs.length === 3, { message: "a third one" });
});

test("an update asks for the health too", async () => {
  const finding = { code: "BROKEN", severity: "error", title: "t", text: "x", fix: "f" } as const;
  await using active = setUp(undefined, () => [finding]);
  await active.update({ added: [peer("a")] });
  expect(active.health.list()).toEqual([finding]);
});
