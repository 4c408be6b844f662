import { expect, test } from "bun:test";
import { basename, dirname } from "node:path";
import { listFiles, listSources, readSource } from "./sources.ts";

/** A file is one idea: longer ones hold several. */
const MOST_LINES = 300;

/** Names that say where code landed instead of what it is. */
const EMPTY_NAMES = /^(?:utils?|helpers?|common|misc|shared|lib)$/i;

test("no file is longer than 300 lines", () => {
  const others = ["test", "dist/build"].flatMap(listFiles).filter((path) => path.endsWith(".ts"));
  const long = [...listSources(), ...others]
    .map((path) => ({ path, lines: readSource(path).split("\n").length - 1 }))
    .filter(({ lines }) => lines > MOST_LINES);
  expect(long).toEqual([]);
});

test("no folder or file has an empty name", () => {
  const ours = listFiles().filter((path) => !path.startsWith("test/toolchain/"));
  const nameless = ours.filter((path) =>
    [...dirname(path).split("/"), basename(path).replace(/\..*$/, "")].some((part) => EMPTY_NAMES.test(part)),
  );
  expect(nameless).toEqual([]);
});

test("a plugin folder is complete", () => {
  const folders = new Set(listFiles("backends").map((path) => path.split("/").slice(0, 2).join("/")));
  const files = new Set(listFiles());
  const missing = [...folders, "plugins/template"].flatMap((folder) =>
    ["plugin.json", "index.ts", "README.md"]
      .map((name) => `${folder}/${name}`)
      .filter((path) => !files.has(path)),
  );
  expect(missing).toEqual([]);
});
