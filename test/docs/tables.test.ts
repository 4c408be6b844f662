import { expect, test } from "bun:test";
import { TOP_LEVEL_KEYS } from "../../core/config/schema.ts";
import type { BackendPlugin } from "../../plugins/sdk/index.ts";
import { readDocument, repository } from "./markdown.ts";

/** Words in code font in the first column of a document's tables. */
function firstColumn(text: string): ReadonlySet<string> {
  const cells = [...text.matchAll(/^\| ([^|]+) \|/gm)].map(([, cell = ""]) => cell);
  return new Set(cells.flatMap((cell) => [...cell.matchAll(/`(\w+)`/g)].map(([, word = ""]) => word)));
}

/** The part of a document below a heading of the second level. */
function sectionOf(document: string, title: string): string {
  return (
    readDocument(document)
      .split(/^## /m)
      .find((part) => part.startsWith(`${title}\n`)) ?? ""
  );
}

test("every key of the network config is documented", () => {
  const documented = firstColumn(sectionOf("docs/configuration.md", "The network config"));
  expect(TOP_LEVEL_KEYS.filter((key) => !documented.has(key))).toEqual([]);
});

const backends = [...new Bun.Glob("backends/*/index.ts").scanSync({ cwd: repository })].sort();

test.each(backends)("the options of %s are those that are documented", async (file) => {
  const name = file.split("/")[1] ?? "";
  const { default: plugin } = (await import(`../../${file}`)) as { default: BackendPlugin };
  const section = sectionOf("docs/backends.md", name);
  expect(section).not.toBe("");
  const documented = [...section.matchAll(/^\| `(\w+)` \|/gm)].map(([, option = ""]) => option);
  expect(documented.sort()).toEqual([...plugin.optionNames].sort());
});
