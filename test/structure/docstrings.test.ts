import { expect, test } from "bun:test";
import { listSources, readSource } from "./sources.ts";

const EXPORTED =
  /^export (?:default )?(?:abstract )?(?:async )?(?:function\*? ?(\w*)|class (\w*)|const (\w+)[^=]* = (?:async )?(?:\([^)]*\)|\w+)(?:: [^=]+)? =>)|^export default (define\w*)\(/;

/** Exported functions and classes without a docstring right above; the overloads of one function share one. */
function findBare(path: string, text: string): string[] {
  const bare: string[] = [];
  const lines = text.split("\n");
  let documented = "";
  lines.forEach((line, at) => {
    const found = EXPORTED.exec(line);
    if (!found) return;
    const name = found.slice(1).find((part) => part) ?? "default";
    if (lines[at - 1]?.trimEnd().endsWith("*/") && hasDocstring(lines, at - 1)) documented = name;
    else if (documented !== name) bare.push(`${path}:${at + 1} ${name}`);
  });
  return bare;
}

/** Whether the comment that ends in line `at` is a docstring. */
function hasDocstring(lines: readonly string[], at: number): boolean {
  for (let line = at; line >= 0; line--) {
    const text = lines[line]?.trim() ?? "";
    if (text.startsWith("/**")) return true;
    if (text.startsWith("/*") || (line !== at && text.endsWith("*/"))) return false;
  }
  return false;
}

test("bare functions and classes are found", () => {
  const text = `/** Good. */
export function good(): void {}
/* No docstring. */
export async function bad(): Promise<void> {}

export class Worse {}
/** Overloaded. */
export function many(a: string): string;
export function many(a: number): number;
export const arrow = (x: number): number => x;
export const table = { a: 1 };
export default defineBackend({});
`;
  expect(findBare("x.ts", text)).toEqual([
    "x.ts:4 bad",
    "x.ts:6 Worse",
    "x.ts:10 arrow",
    "x.ts:12 defineBackend",
  ]);
});

test("every exported function and class has a docstring", () => {
  expect(listSources().flatMap((path) => findBare(path, readSource(path)))).toEqual([]);
});
