/**
 * The executable as it is shipped, in an empty folder and in one that is full of traps: whatever lies in the working
 * directory may not act on a daemon that runs as root.
 */
import { expect, test } from "bun:test";
import { cpSync, existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { TemporaryRoot } from "../core/registry/plugin-root.ts";
import { executable } from "../lab/daemon.ts";
import { repository, run, TemporaryFolder } from "./run-executable.ts";

const flanneld = executable();

/** Fills a folder with everything a JavaScript runtime may read of its own accord; acting leaves the file `sprung`. */
function setTraps(folder: string): void {
  const trap = `require("node:fs").writeFileSync(${JSON.stringify(join(folder, "sprung"))}, "");`;
  const files: Record<string, string> = {
    "trap.cjs": trap,
    // Not an address: a daemon that reads this refuses to start.
    ".env": "FLANNELD_PUBLIC_IP=trap\nBUN_OPTIONS=--preload=./trap.cjs\nNODE_OPTIONS=--require=./trap.cjs\n",
    "bunfig.toml": 'preload = ["./trap.cjs"]\n[run]\nbun = true\n[test]\npreload = ["./trap.cjs"]\n',
    "tsconfig.json":
      '{ "compilerOptions": { "paths": { "flannel/sdk": ["./trap.cjs"], "valibot": ["./trap.cjs"] } } }',
    "package.json": '{ "name": "trap", "imports": { "#*": "./trap.cjs" } }',
  };
  for (const name of ["etcd3", "execa", "flannel/sdk", "pino", "valibot"])
    files[`node_modules/${name}/index.js`] = trap;
  for (const [name, content] of Object.entries({ ...files, ".env.local": files[".env"] ?? "" })) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), content);
  }
}

test("the traps do work on a runtime that reads them", async () => {
  using folder = new TemporaryFolder();
  setTraps(folder.path);
  writeFileSync(join(folder.path, "main.ts"), "console.log(process.env.FLANNELD_PUBLIC_IP);");
  const { stdout } = await run(process.execPath, ["main.ts"], folder.path);
  expect(stdout).toBe("trap\n");
  expect(existsSync(join(folder.path, "sprung"))).toBe(true);
});

test.each([
  ["version", ["version"]],
  ["backends", ["backends", "-o", "json"]],
  ["config check", ["config", "check", "CONFIG", "--plugin-dir", "PLUGINS"]],
])("%s says the same in an empty folder and in one full of traps", async (_name, words) => {
  using root = new TemporaryRoot();
  cpSync(join(repository, "plugins/template"), join(root.path, "template"), { recursive: true });
  const config = root.write(
    root.outside("config.json"),
    '{ "Network": "10.5.0.0/16", "Backend": { "Type": "template", "Metric": 50 } }',
  );
  const args = words.map((word) => (word === "CONFIG" ? config : word === "PLUGINS" ? root.path : word));
  using empty = new TemporaryFolder();
  using trapped = new TemporaryFolder();
  setTraps(trapped.path);

  const clean = await run(flanneld, args, empty.path);
  expect(clean).toMatchObject({ stderr: "", exitCode: 0 });
  expect(clean.stdout).not.toBe("");
  expect(readdirSync(empty.path)).toEqual([]);
  expect(await run(flanneld, args, trapped.path)).toEqual(clean);
  expect(existsSync(join(trapped.path, "sprung"))).toBe(false);
});

test("lists what is in the repository's backends folder", async () => {
  using empty = new TemporaryFolder();
  const { stdout } = await run(flanneld, ["backends", "-o", "json"], empty.path);
  const { backends } = JSON.parse(stdout) as { backends: { plugin: string; from: string }[] };
  const builtIn = backends.filter(({ from }) => from === "built-in").map(({ plugin }) => plugin);
  expect(builtIn).toEqual(readdirSync(join(repository, "backends")).sort());
});
