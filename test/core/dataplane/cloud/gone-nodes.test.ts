import { describe, expect, test } from "bun:test";
import { CloudError } from "flannel/sdk";
import { until } from "../../../lab/until.ts";
import { LEADING, OWN, STALE, setUp } from "./node.ts";

describe("a route of a node that is gone", () => {
  test("goes when the node leads", async () => {
    const { cloud, start } = setUp(LEADING);
    cloud.routes.push(STALE);
    await using _ = await start();
    expect(cloud.routes.map(({ dst }) => dst)).toEqual([OWN]);
  });

  test("stays when its subnet has got a lease since it was planned", async () => {
    let asked = 0;
    const takenSubnets = async () => (++asked === 1 ? [] : [{ ipv4: STALE.dst }]);
    const { cloud, driver, start, count } = setUp({ ...LEADING, takenSubnets });
    cloud.routes.push(STALE);
    await using _ = await start();
    expect(asked).toBe(2);
    expect(count("delete")).toBe(0);
    expect(driver.counts().failing).toBe(0);
  });

  test("stays when it leads to a new node since it was planned", async () => {
    const { cloud, start, count } = setUp(LEADING);
    cloud.routes.push(STALE);
    cloud.beforeRead = () => {
      // The own route is made and verified, then the plan is made anew with the other one retired.
      if (count("read") !== 4) return;
      cloud.routes = cloud.routes.map((route) =>
        route.dst === STALE.dst ? { ...route, target: "new" } : route,
      );
    };
    await using _ = await start();
    expect(cloud.routes.map(({ target }) => target).sort()).toEqual(["new", "self"]);
    expect(count("delete")).toBe(0);
  });

  test("stays when the store cannot be asked, which is a warning", async () => {
    const refuse = async () => {
      throw new Error("permission denied");
    };
    const { cloud, driver, start, health } = setUp({ ...LEADING, lead: refuse });
    cloud.routes.push(STALE);
    await using _ = await start();
    expect(health.list()).toMatchObject([
      { code: "CLOUD_STALE_ROUTES", severity: "warning", text: "permission denied" },
    ]);
    expect(driver.counts().failing).toBe(0);
    cloud.routes = cloud.routes.filter(({ dst }) => dst !== STALE.dst);
    await until(() => health.list().length === 0, { message: "not over" });
  });

  test("that cannot be looked at once more stays, which is a warning", async () => {
    const { cloud, driver, start, count, health } = setUp(LEADING);
    cloud.routes.push(STALE);
    cloud.beforeRead = () => {
      if (count("read") === 4) throw new CloudError("denied", "test:read", "it is so", "do this");
    };
    await using _ = await start();
    expect(health.list()).toMatchObject([{ code: "CLOUD_DENIED", severity: "warning" }]);
    expect(driver.counts().failing).toBe(0);
    expect(count("delete")).toBe(0);
  });
});
