import { expect, test } from "bun:test";
import { FLAG_NAMES } from "../../core/cli/flag-table.ts";
import { regenerate } from "../../dist/build/docs.ts";
import { DOCUMENTS, readDocument } from "./markdown.ts";

test.each(DOCUMENTS)(
  "the generated parts of %s are up to date (else: bun dist/build/docs.ts)",
  (document) => {
    const text = readDocument(document);
    expect(regenerate(text)).toBe(text);
  },
);

test("every flag is documented", () => {
  const text = readDocument("docs/configuration.md");
  expect(FLAG_NAMES.filter((name) => !new RegExp(`^\\| \`--${name}[ \`]`, "m").test(text))).toEqual([]);
});

test("a section that nothing generates is an error", () => {
  expect(() => regenerate("<!-- generated: moon -->\n<!-- /generated -->\n")).toThrow('section "moon"');
  expect(regenerate("<!-- generated: flags etcd -->\nold\n<!-- /generated -->\n")).not.toContain("old");
});
