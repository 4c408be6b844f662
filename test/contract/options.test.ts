import { describe, expect, test } from "bun:test";
import { basename } from "node:path";
import fc from "fast-check";
import type { BackendPlugin } from "flannel/sdk";
import { anyJson, deepFreeze, expectPlain } from "./inputs.ts";
import { FOLDERS, loadSubject } from "./plugins.ts";
import { optionSamples } from "./samples.ts";

const validate = async (plugin: BackendPlugin, value: unknown) => plugin.options["~standard"].validate(value);

/** The option an issue is about, in either notation of Standard Schema. */
function optionOf(path: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined): unknown {
  const [step] = path ?? [];
  return typeof step === "object" ? step.key : step;
}

describe.each(FOLDERS.map((folder) => [basename(folder), folder] as const))(
  "options of %s",
  (name, folder) => {
    test("are fine as the samples have them, and plain data with defaults filled in", async () => {
      const { plugin } = await loadSubject(folder);
      for (const raw of optionSamples(name)) {
        const frozen = deepFreeze(structuredClone(raw));
        const result = await validate(plugin, frozen);
        expect(result.issues).toBeUndefined();
        if (result.issues) continue;
        expectPlain(result.value);
        expect(await validate(plugin, frozen)).toEqual(result);
        // What is complete stays as it is.
        expect(await validate(plugin, result.value)).toMatchObject({ value: result.value as object });
      }
    });

    test("of a wrong type are refused, each under its own name and in words", async () => {
      const { plugin } = await loadSubject(folder);
      for (const option of plugin.optionNames) {
        const [sample = {}] = optionSamples(name);
        const result = await validate(plugin, { ...sample, [option]: { no: "option takes this" } });
        expect(
          result.issues?.map((issue) => optionOf(issue.path)),
          option,
        ).toContain(option);
        for (const issue of result.issues ?? []) expect(issue.message).toMatch(/\w+ \w+/);
      }
    });

    test("of any kind never make the check throw", async () => {
      const { plugin } = await loadSubject(folder);
      const names = [...plugin.optionNames, "Unknown"];
      const anything = fc.dictionary(fc.constantFrom(...names), anyJson, { noNullPrototype: true });
      await fc.assert(
        fc.asyncProperty(fc.oneof(anything, anyJson), async (value) => {
          const result = await validate(plugin, deepFreeze(value));
          if (result.issues) expect(result.issues.length).toBeGreaterThan(0);
          else expectPlain(result.value);
        }),
        { numRuns: 200 },
      );
    });
  },
);
