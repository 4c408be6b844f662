import { expect, test } from "bun:test";
import { resolve } from "node:path";

const repository = resolve(import.meta.dir, "../../..");

test("the SDK brings nothing along but itself, the values of core/net and the error that plugins throw", async () => {
  const entrypoints = [resolve(repository, "plugins/sdk/index.ts")];
  const { outputs, metafile } = await Bun.build({ entrypoints, target: "bun", metafile: true });
  const inputs = Object.keys(metafile?.inputs ?? {}).map((file) =>
    resolve(file).slice(repository.length + 1),
  );
  expect(inputs).toContain("plugins/sdk/index.ts");
  expect(
    inputs.filter((file) => !/^((plugins\/sdk|core\/net)\/|core\/observe\/fault\.ts$)/.test(file)),
  ).toEqual([]);
  expect(await outputs[0]?.text()).not.toContain("import ");
});
