import { expect } from "bun:test";
import { readBlocks } from "../docs/markdown.ts";

const DOCUMENT = "docs/backends.md";

/** What the documented policy (or role) of a backend permits, in order of the alphabet. */
export function documentedPermissions(backend: string): readonly string[] {
  const block = readBlocks(DOCUMENT).find(
    ({ language, words }) => language === "json" && words[0] === "policy" && words[1] === backend,
  );
  if (!block) throw new Error(`${DOCUMENT} has no policy of ${backend}`);
  const found = listStrings(JSON.parse(block.text)).filter((text) => /^\w+(:|\.\w+\.)\w+$/.test(text));
  return found.toSorted();
}

/** The policy permits what was called, and nothing else. */
export function expectPolicy(backend: string, needed: ReadonlySet<string>): void {
  expect(documentedPermissions(backend)).toEqual([...needed].toSorted());
}

function listStrings(value: unknown): readonly string[] {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(listStrings) : [];
}
