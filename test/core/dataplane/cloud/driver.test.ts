import { describe, expect, test } from "bun:test";
import type { CloudErrorKind } from "flannel/sdk";
import { until } from "../../../lab/until.ts";
import { FOREIGN, LEADING, OWN, peer, STALE, setUp } from "./node.ts";

test("the lease is held before the cloud is asked; peers that come and go ask nothing", async () => {
  const { cloud, driver, start, count } = setUp();
  await driver.prepare();
  await driver.attach({ subnets: { ipv4: OWN } });
  expect(cloud.calls).toEqual([]);
  await using _ = await start();
  expect(cloud.routes).toEqual([{ dst: OWN, target: "self", kind: "node", state: "active" }]);
  const reads = count("read");
  for (let n = 0; n < 100; n++) await driver.update(new Map());
  expect(count("read")).toBeLessThan(reads + 5);
});

test("a peer without route in the table is told, and counted", async () => {
  const { cloud, driver, start } = setUp();
  await using _ = await start();
  expect(driver.describe(peer.key).problems).toEqual([
    "at the last look t had no route to 10.244.2.0/24 in force",
  ]);
  expect(driver.counts()).toMatchObject({ wanted: 1, programmed: 0, unusable: 1, failing: 0 });
  cloud.routes.push({ dst: "10.244.2.0/24", target: "two", kind: "node", state: "active" });
  await until(() => driver.describe(peer.key).problems.length === 0, { message: "still missing" });
});

test("what is changed behind its back is repaired and told, the first run is not", async () => {
  const { cloud, start, repaired } = setUp();
  await using _ = await start();
  expect(repaired).toEqual([]);
  cloud.routes = [];
  await until(() => cloud.routes.length === 1, { message: "not repaired" });
  await until(() => repaired.length === 1, { message: "not told" });
  expect(repaired).toEqual(["route tables of the cloud"]);
});

describe("every kind of failure", () => {
  const KINDS: readonly (readonly [CloudErrorKind, string])[] = [
    ["denied", "CLOUD_DENIED"],
    ["credentials", "CLOUD_CREDENTIALS"],
    ["missing", "CLOUD_NOT_FOUND"],
    ["clock", "CLOUD_CLOCK"],
    ["metadata", "CLOUD_METADATA"],
    ["unreachable", "CLOUD_UNREACHABLE"],
    ["refused", "CLOUD_REFUSED"],
  ];

  test.each(KINDS)("%s of a read is a finding, and over when it is", async (kind, code) => {
    const { cloud, driver, start, codes, health } = setUp();
    cloud.failures.set("read", kind);
    await using _ = await start();
    expect(codes()).toEqual([code]);
    expect(health.list()[0]).toMatchObject({
      severity: "error",
      text: "test:read: it is so",
      fix: "do this",
    });
    expect(driver.counts().failing).toBe(1);
    cloud.failures.clear();
    await until(() => codes().length === 0 && cloud.routes.length === 1, { message: codes().join() });
    expect(driver.counts().failing).toBe(0);
  });

  test("leads to a new discovery: credentials may be others by then", async () => {
    const { cloud, start, count } = setUp();
    cloud.failures.set("create", "credentials");
    await using _ = await start();
    await until(() => count("discover") > 2, { message: "no new discovery" });
  });

  test("a limit is not asked again until the table changes", async () => {
    const { cloud, start, count, codes } = setUp();
    cloud.failures.set("create", "full");
    await using _ = await start();
    const reads = count("read");
    await until(() => count("read") > reads + 5, { message: "no looks" });
    expect(count("create")).toBe(1);
    expect(codes()).toEqual(["CLOUD_TABLE_FULL"]);
    cloud.failures.clear();
    cloud.routes.push(FOREIGN);
    await until(() => codes().length === 0, { message: codes().join() });
    expect(count("create")).toBe(2);
  });

  test("that somebody else's black hole cannot be removed is a warning, and no reason not to be ready", async () => {
    const { cloud, driver, start, health } = setUp(LEADING);
    cloud.failures.set("delete", "denied");
    cloud.routes.push({ ...STALE, state: "blackhole" });
    await using _ = await start();
    expect(health.list()).toMatchObject([{ code: "CLOUD_DENIED", severity: "warning" }]);
    expect(driver.counts().failing).toBe(0);
    expect(cloud.routes.map(({ dst }) => dst)).toContain(OWN);
  });

  test("a change is logged once, however often it fails", async () => {
    const { cloud, start, count, log } = setUp();
    cloud.failures.set("create", "denied");
    await using _ = await start();
    await until(() => count("create") > 3, { message: "no tries" });
    expect(log.lines.filter(({ message }) => message.startsWith("create "))).toHaveLength(1);
    expect(log.lines.filter(({ message }) => message.startsWith("place "))).toHaveLength(1);
  });

  test("nothing is waited for after a failure that the next call would meet too", async () => {
    const { cloud, driver } = setUp();
    cloud.failures.set("create", "throttled");
    await driver.attach({ subnets: { ipv4: OWN } });
    const began = performance.now();
    await driver.update(new Map());
    expect(performance.now() - began).toBeLessThan(400);
  });

  test("a change that does not show is told", async () => {
    const { cloud, start, codes } = setUp();
    Object.defineProperty(cloud, "routes", { get: () => [], set: () => {} });
    await using _ = await start();
    expect(codes()).toEqual(["CLOUD_NOT_SETTLED"]);
  }, 30_000);
});

test("the MTU of pods follows the interface", async () => {
  const { changeMtu, mtus, start } = setUp();
  await using _ = await start();
  changeMtu(1400);
  await until(() => mtus.length > 0, { message: "not told" });
  expect(mtus).toEqual([1400]);
});
