import { expect, test } from "bun:test";
import { matches, readTranscript } from "./transcript.ts";

test("a transcript is read", () => {
  expect(readTranscript("$ one\n$ two \\\n  more\nfirst\n\nsecond\n")).toEqual([
    { command: "one", output: "" },
    { command: "two \\\n  more", output: "first\n\nsecond" },
  ]);
  expect(() => readTranscript("stray\n$ one\n")).toThrow("begins with a command");
});

test.each([
  ["same", "same\n", true],
  ["same ", "same", true],
  ["same", "other", false],
  ["a … c", "a b c", true],
  ["a … c", "a b\nc", false],
  ["a.c", "abc", false],
  ["first\n…\nlast", "first\nlast", true],
  ["first\n…\nlast", "first\n1\n2\nlast", true],
  ["first\n…", "first", true],
  ["first", "first\nsecond", false],
  ["…", "", true],
  ["", "", true],
  ["", "something", false],
])("%j shows %j: %p", (shown, printed, expected) => {
  expect(matches(shown, printed)).toBe(expected);
});
