import { expect, test } from "bun:test";
import { extname } from "node:path";
import { listFiles, readSource } from "./sources.ts";

/** Files whose addresses and paths others chose. */
const OTHERS_WORDS = /^(?:bun\.lock|LICENSE|test\/toolchain\/package-lock\.json)$/;
const TEXT = new Set(["", ".ts", ".md", ".json", ".sh", ".toml", ".service", ".yaml", ".yml"]);

/** What must not be named: a path of the machine it was written on, a server it was installed from, its history. */
const FORBIDDEN: readonly (readonly [what: string, words: RegExp])[] = [
  ["a path of somebody's machine", /(?<![\w.$}-])\/(?:work|home|root|Users)\/\w/],
  ["a temporary path, which belongs to one machine or to a test", /(?<![\w.$}-])\/tmp\/\w/],
  ["a package registry", /\bregistry\.(?:npmjs|yarnpkg)\.\w+|\bnpm\.pkg\.github\.com|\bproxy\.golang\.org/],
  [
    "a document that is not here",
    /\bfield[- ]failures?\b|\bdesign\.md\b|\bupstream-behaviour\b|\bbun-facts\b/i,
  ],
  [
    "how it was written",
    new RegExp(`\\b(?:${["claude", "copilot", "chatgpt", "language model", "the brief"].join("|")})\\b`, "i"),
  ],
];

/** Tests that need any path at all; nothing is written there. */
const ALLOWED: readonly (readonly [path: string, text: string])[] = [
  ["test/core/registry/manifest.test.ts", "/tmp/index.ts"],
  ["test/lab/lab.test.ts", "/tmp/notify-"],
];

test("the repository speaks of the project alone", () => {
  const found: string[] = [];
  for (const path of listFiles()) {
    if (OTHERS_WORDS.test(path) || path === "test/structure/words.test.ts" || !TEXT.has(extname(path)))
      continue;
    readSource(path)
      .split("\n")
      .forEach((line, at) => {
        if (ALLOWED.some(([file, text]) => file === path && line.includes(text))) return;
        for (const [what, words] of FORBIDDEN) {
          if (words.test(line)) found.push(`${path}:${at + 1} names ${what}: ${words.exec(line)?.[0]}`);
        }
      });
  }
  expect(found).toEqual([]);
});
