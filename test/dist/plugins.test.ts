/** The plugin loader inside an executable, where modules, workers and built-ins lie elsewhere than in the repository. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { chmodSync, cpSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { BackendRow } from "../../core/registry/registry.ts";
import { addBroken, BREAKAGES } from "../core/registry/broken-plugins.ts";
import { TemporaryRoot } from "../core/registry/plugin-root.ts";
import { build, repository, run, TemporaryFolder } from "./run-executable.ts";

interface Report {
  readonly milliseconds: number;
  readonly rows: readonly BackendRow[];
  readonly findings: readonly { readonly code: string }[];
  readonly loads: Readonly<
    Record<
      string,
      { readonly mode?: string; readonly code?: string; readonly message?: string; readonly hint?: string }
    >
  >;
}

const folder = new TemporaryFolder();
const executable = join(folder.path, "registry-main");

beforeAll(() => build("test/dist/registry-main.ts", executable), 60_000);
afterAll(() => folder[Symbol.dispose]());

async function report(...args: string[]): Promise<Report> {
  using empty = new TemporaryFolder();
  const { stdout, stderr, exitCode } = await run(executable, args, empty.path);
  expect({ stderr, exitCode }).toEqual({ stderr: "", exitCode: 0 });
  return JSON.parse(stdout) as Report;
}

test("holds and loads every built-in", async () => {
  const types = readdirSync(join(repository, "backends")).sort();
  const { rows, findings, loads } = await report(...types);
  expect(rows.map(({ plugin, from, status }) => ({ plugin, from, status }))).toEqual(
    types.map((plugin) => ({ plugin, from: "built-in", status: "active" })),
  );
  expect(findings).toEqual([]);
  expect(Object.keys(loads)).toEqual(types);
});

test("loads the template as it is copied, in TypeScript", async () => {
  using root = new TemporaryRoot();
  cpSync(join(repository, "plugins/template"), join(root.path, "template"), { recursive: true });
  const { rows, loads } = await report("--root", root.path, "template");
  expect(loads.template).toEqual({ mode: "declarative" });
  expect(rows.find(({ plugin }) => plugin === "template")).toMatchObject({ status: "active", reason: "" });
});

test("loads the template as its README bundles it", async () => {
  using root = new TemporaryRoot();
  const source = join(repository, "plugins/template/index.ts");
  const outfile = join(root.path, "template/index.js");
  const externals = ["--external", "flannel/sdk", "--external", "valibot"];
  const bundled = Bun.spawnSync([process.execPath, "build", source, "--outfile", outfile, ...externals]);
  expect(bundled.success).toBe(true);
  root.write("template/index.js", await Bun.file(outfile).text());
  const manifest = await Bun.file(join(repository, "plugins/template/plugin.json")).text();
  root.write("template/plugin.json", manifest.replace("index.ts", "index.js"));
  expect((await report("--root", root.path, "template")).loads.template).toEqual({ mode: "declarative" });
});

test("tells what is broken as it does when run from source, and goes on", async () => {
  using root = new TemporaryRoot();
  addBroken(root);
  root.add("works");
  chmodSync(root.write("writable/plugin.json", "{}"), 0o666);
  const names = BREAKAGES.map(({ name }) => name);
  const { loads, rows } = await report("--root", root.path, ...names, "works", "writable", "nothing");
  for (const { name, reason } of BREAKAGES) {
    expect(loads[name]?.code).toBe("PLUGIN_FAILED");
    expect(loads[name]?.message).toContain(reason.replace("<folder>", join(root.path, name)));
    expect(rows.find(({ plugin }) => plugin === name)?.status).toBe("failed");
  }
  expect(loads.works).toEqual({ mode: "declarative" });
  expect(loads.writable?.code).toBe("PLUGIN_UNTRUSTED");
  expect(loads.nothing?.code).toBe("BACKEND_UNKNOWN");
});

test("a drop-in takes the place of a built-in only when both sides say so", async () => {
  using root = new TemporaryRoot();
  root.add("mine", { backends: [{ type: "vxlan", families: ["ipv4"] }], overrides: ["vxlan"] });
  const without = await report("--root", root.path);
  expect(without.rows.find(({ plugin }) => plugin === "mine")?.status).toBe("conflict");
  const { rows } = await report("--root", root.path, "--allow-override", "mine", "vxlan");
  const statuses = rows
    .filter(({ type }) => type === "vxlan")
    .map(({ plugin, status }) => `${plugin} ${status}`);
  expect(statuses).toEqual(["vxlan conflict", "mine active"]);
});

test("packages beside a drop-in are not picked up", async () => {
  using root = new TemporaryRoot();
  root.add("greedy", {}, 'import x from "left-pad"; export default x;');
  root.write("greedy/node_modules/left-pad/package.json", '{ "name": "left-pad", "main": "index.js" }');
  root.write("greedy/node_modules/left-pad/index.js", "export default {};");
  const { loads } = await report("--root", root.path, "greedy");
  expect(loads.greedy?.message).toContain('imports the package "left-pad"');
  expect(loads.greedy?.hint).toContain("bun build");
});
