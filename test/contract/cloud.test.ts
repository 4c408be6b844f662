import { describe, expect, test } from "bun:test";
import type { CloudBackend } from "flannel/sdk";
import { bareFacts, expectPlain } from "./inputs.ts";
import { BY_MODE, configure, onePerStack, type Setting } from "./plugins.ts";

async function configureCloud(setting: Setting): Promise<CloudBackend> {
  const backend = await configure(setting);
  if (backend.mode !== "cloud") throw new Error(`${setting.subject.name} is not a cloud`);
  return backend;
}

const refusalOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );

describe.each(onePerStack(BY_MODE.cloud))("%s", (_, setting) => {
  test("publishes plain data under a type it serves, or none as upstream", async () => {
    const published = (await configureCloud(setting)).publish(bareFacts());
    expectPlain(published);
    expect([...setting.subject.manifest.backends.map(({ type }) => type), ""]).toContain(
      published.backendType,
    );
  });

  test("adds nothing to a packet", () => {
    expect(setting.subject.manifest.backends[0]?.overhead).toBe(0);
  });

  test("looks at its tables as often as it is told, and removes others' routes only when it may", async () => {
    const often = { ...setting, raw: { ...setting.raw, CheckInterval: 7, StaleRouteGrace: 9 } };
    expect(await configureCloud(often)).toMatchObject({ interval: 7_000, stale: { grace: 9_000 } });
    const never = { ...setting, raw: { ...setting.raw, RemoveStaleRoutes: false } };
    expect((await configureCloud(never)).stale).toBeUndefined();
  });

  test("does not read or change before it has found out where it is", async () => {
    const backend = await configureCloud(setting);
    const change = { action: "create", table: "t", dst: "10.244.1.0/24", target: "x" } as const;
    for (const work of [backend.read(), backend.apply(change)]) {
      expect(await refusalOf(work)).toMatchObject({ name: "CloudError", kind: "refused" });
    }
  });
});
