/** What an active backend's driver tells the agent: while it runs, and from its stop on nothing. */
import { describe, expect, test } from "bun:test";
import type { SyncReport } from "flannel/sdk";
import type { Finding } from "../../../core/observe/finding.ts";
import { yieldToEventLoop } from "../../../core/retry/event-loop.ts";
import { until } from "../../lab/until.ts";
import { peer, setUp } from "./active-backend.ts";
import { emptyKernel } from "./empty-kernel.ts";

describe("at the stop", () => {
  const finding = { code: "BROKEN", severity: "error", title: "t", text: "x", fix: "f" } as const;
  const bad: SyncReport = {
    failed: [{ key: "a", reason: "no" }],
    unusable: [{ key: "b", reason: "other" }],
  };

  test("what was found is over: whoever follows looks for himself", async () => {
    await using active = setUp(
      () => bad,
      () => [finding],
    );
    await active.update({ added: [peer("a"), peer("b")] });
    await until(() => active.health.list().length === 3, { message: "three findings" });
    await active.driver.stop();
    expect(active.health.list()).toEqual([]);
  });

  test("a look that is still under way raises nothing afterwards, nor clears what the next one found", async () => {
    const { promise, resolve } = Promise.withResolvers<SyncReport>();
    let findings: Finding[] = [finding];
    await using active = setUp(
      () => promise,
      () => findings,
    );
    const updated = active.update({ added: [peer("a"), peer("b")] });
    const stopped = active.driver.stop();
    active.health.raise({ ...finding, code: "DATAPLANE_REFUSED" });
    resolve(bad);
    await Promise.all([updated, stopped]);
    findings = [];
    await active.update({});
    await yieldToEventLoop();
    expect(active.health.list().map(({ code }) => code)).toEqual(["DATAPLANE_REFUSED"]);
  });

  test("also at one that undoes the start", async () => {
    await using active = setUp(() => bad);
    await active.update({ added: [peer("a")] });
    await active.driver.abandon();
    await yieldToEventLoop();
    expect(active.health.list()).toEqual([]);
  });
});

test("another MTU of the interface asks the backend, and what it makes of that is told at once, and once", async () => {
  await using active = setUp(() => ({ failed: [], mtu: active.machine.mtu - 100 }));
  await active.driver.attach({ subnets: { ipv4: "10.5.1.0/24" } });
  await active.update({ added: [peer("a")] });
  active.run();
  await yieldToEventLoop();
  expect(active.mtus).toEqual([]);
  active.machine.mtu = 1300;
  const link = (await emptyKernel(active.machine).link("eth0"))!;
  active.notices.push({ kind: "link", action: "put", link });
  await until(() => active.mtus.length > 0, { message: "the new MTU" });
  active.machine.mtu = 1450;
  await active.update({ added: [peer("b")] });
  await active.update({ removed: ["b"] });
  expect(active.mtus).toEqual([1200, 1350]);
});

test("an MTU that changes before the loop runs is told when it does", async () => {
  await using active = setUp(() => ({ failed: [], mtu: 1300 }));
  await active.driver.attach({ subnets: { ipv4: "10.5.1.0/24" } });
  await active.update({ added: [peer("a")] });
  expect(active.mtus).toEqual([]);
  active.run();
  expect(active.mtus).toEqual([1300]);
});
