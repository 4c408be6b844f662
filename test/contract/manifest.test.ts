import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { FOLDERS, loadSubject } from "./plugins.ts";

describe.each(FOLDERS.map((folder) => [basename(folder), folder] as const))("%s", (name, folder) => {
  test("is a plugin the registry would use, under the name of its folder", async () => {
    const { manifest, plugin } = await loadSubject(folder);
    expect(manifest.name).toBe(name);
    expect(manifest.description).not.toBe("");
    expect(new Set(plugin.optionNames.map((option) => option.toLowerCase())).size).toBe(
      plugin.optionNames.length,
    );
    expect(plugin.optionNames).not.toContain("Type");
  });

  test("its secrets are options it has", async () => {
    const { manifest, plugin } = await loadSubject(folder);
    for (const secret of manifest.secrets) expect(plugin.optionNames).toContain(secret.split(".")[0] ?? "");
  });

  test("its code imports nothing but the SDK, valibot, Node's modules, packages and its own folder", () => {
    for (const file of new Bun.Glob("**/*.ts").scanSync(folder)) {
      if (file.endsWith(".test.ts")) continue;
      const source = readFileSync(join(folder, file), "utf8");
      for (const [, from = ""] of source.matchAll(/^(?:import|export)[^;]*? from "([^"]+)";/gms)) {
        if (from.startsWith(".")) expect(join(folder, file, "..", from)).toStartWith(folder);
      }
    }
  });
});
