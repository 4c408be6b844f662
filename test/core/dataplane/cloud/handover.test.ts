import { describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readLeftRoutes } from "../../../../core/dataplane/cloud/left-routes.ts";
import { OWN, setUp } from "./node.ts";

describe("when another driver takes over", () => {
  test("what this one has found is over, and a look under way finds nothing more", async () => {
    const { cloud, driver, start, codes } = setUp();
    cloud.failures.set("read", "missing");
    await using _ = await start();
    expect(codes()).toEqual(["CLOUD_NOT_FOUND"]);
    const asked = Promise.withResolvers<void>();
    const stopped = Promise.withResolvers<void>();
    cloud.failures.clear();
    cloud.beforeRead = () => {
      asked.resolve();
      return stopped.promise;
    };
    await asked.promise;
    cloud.failures.set("read", "denied");
    await driver.stop();
    expect(codes()).toEqual([]);
    stopped.resolve();
    // A turn of its own comes after the look.
    await driver.update(new Map());
    expect(codes()).toEqual([]);
    expect(cloud.routes).toEqual([]);
  });

  test("what is wrong when the daemon ends is not over", async () => {
    const { cloud, driver, start, codes } = setUp();
    cloud.failures.set("read", "missing");
    {
      await using _ = await start();
    }
    await driver.stop();
    expect(codes()).toEqual(["CLOUD_NOT_FOUND"]);
  });

  test("where its routes are is noted for whoever has another backend here", async () => {
    const folder = mkdtempSync(join(tmpdir(), "cloud-driver-"));
    await using stack = new AsyncDisposableStack();
    stack.defer(() => rmSync(folder, { recursive: true }));
    const file = join(folder, "subnet.env.cloud");
    const { start } = setUp({}, { file, backend: "some-cloud" });
    await using _ = await start();
    expect(readLeftRoutes(file)).toEqual({
      backend: "some-cloud",
      place: "here",
      routes: [`${OWN} → self in t`],
    });
  });
});
