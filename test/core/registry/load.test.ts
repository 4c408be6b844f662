import { expect, test } from "bun:test";
import { chmodSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as valibot from "valibot";
import { Fault } from "../../../core/observe/fault.ts";
import { checkBackend } from "../../../core/registry/contract.ts";
import { serveDropIn, verifyDropIn } from "../../../core/registry/drop-in.ts";
import { embeddedRoot } from "../../../core/registry/embedded.ts";
import { loadPlugin } from "../../../core/registry/load.ts";
import * as sdk from "../../../plugins/sdk/index.ts";
import { addBroken, BREAKAGES } from "./broken-plugins.ts";
import { TemporaryRoot, WORKING } from "./plugin-root.ts";

async function faultOf(work: Promise<unknown>): Promise<Fault> {
  try {
    await work;
  } catch (error) {
    if (error instanceof Fault) return error;
    throw error;
  }
  throw new Error("no fault");
}

test("loads a TypeScript drop-in, which is active from then on", async () => {
  using root = new TemporaryRoot();
  root.add("mine");
  const registry = root.discover();
  const { plugin, manifest, entry } = await registry.load("mine");
  expect(plugin.optionNames).toEqual([]);
  expect(manifest.timeouts.load).toBe(2_000);
  expect(entry.state).toBe("active");
  expect(registry.rows[0]?.status).toBe("active");
  expect(registry.select("mine").state).toBe("active");
});

test("drop-ins get the very modules core uses, and may import files and JSON of their folder", async () => {
  using root = new TemporaryRoot();
  const source = `
    import * as sdk from "flannel/sdk";
    import * as v from "valibot";
    import { name } from "./deeper/name.mjs";
    import data from "./data.json";
    export default { ...sdk.defineBackend({ optionNames: [name, data.name], options: v.object({}), configure() {} }),
      seen: { defineBackend: sdk.defineBackend, object: v.object } };`;
  root.add("mine", {}, source);
  root.write("mine/deeper/name.mjs", 'export const name = "Deep";');
  root.write("mine/data.json", '{ "name": "Json" }');
  const { plugin } = await root.discover().load("mine");
  expect(plugin.optionNames).toEqual(["Deep", "Json"]);
  expect((plugin as unknown as { seen: object }).seen).toEqual({
    defineBackend: sdk.defineBackend,
    object: valibot.object,
  });
});

test.each(BREAKAGES)("failed: $name", async ({ name, reason }) => {
  using root = new TemporaryRoot();
  addBroken(root);
  const registry = root.discover();
  const fault = await faultOf(registry.load(name));
  expect(fault.code).toBe("PLUGIN_FAILED");
  expect(fault.message).toContain(reason.replace("<folder>", join(root.path, name)));
  expect(fault.message).not.toContain("\n");
  expect(fault.hint).not.toBe("");
  // Told again by the table, the findings and by anyone who selects it; the others are untouched.
  expect(registry.rows.find((row) => row.plugin === name)).toMatchObject({ status: "failed" });
  expect(registry.findings.map(({ code }) => code)).toEqual(["PLUGIN_FAILED"]);
  expect((await faultOf(registry.load(name))).code).toBe("PLUGIN_FAILED");
  expect(registry.rows.filter((row) => row.status === "available")).toHaveLength(BREAKAGES.length - 1);
});

test("the bytes that were verified are the ones that run", async () => {
  using root = new TemporaryRoot();
  const sha256 = new Bun.CryptoHasher("sha256").update(WORKING).digest("hex");
  const folder = root.add("mine", { sha256 });
  const registry = root.discover();
  writeFileSync(join(folder, "index.ts"), `${WORKING}\n// changed since`);
  const fault = await faultOf(registry.load("mine"));
  expect(fault.code).toBe("PLUGIN_UNTRUSTED");
  expect(fault.message).toContain(sha256);
  expect(registry.rows[0]?.status).toBe("untrusted");
});

test("every file a drop-in imports has to be trusted", async () => {
  using root = new TemporaryRoot();
  root.add("mine", {}, `import "./other.ts";\n${WORKING}`);
  const other = root.write("mine/other.ts", "export {};");
  chmodSync(other, 0o666);
  const fault = await faultOf(root.discover().load("mine"));
  expect(fault.message).toContain(`${other} can be written by others`);
  expect(fault.hint).toContain(`chmod go-w ${other}`);
});

test("a hash covers one file, so a pinned drop-in is one file", async () => {
  using root = new TemporaryRoot();
  const source = `import "./other.ts";\n${WORKING}`;
  root.add("mine", { sha256: new Bun.CryptoHasher("sha256").update(source).digest("hex") }, source);
  root.write("mine/other.ts", "export {};");
  expect((await faultOf(root.discover().load("mine"))).message).toContain('does not cover "./other.ts"');
});

test.each([
  ["in the folder", "mine/..data/index.ts", "..data/index.ts"],
  ["beside the folder", ".shared/index.ts", "../.shared/index.ts"],
])("a main file behind a link, %s, in a root behind a link", async (_where, file, target) => {
  using root = new TemporaryRoot();
  const folder = root.add("mine", { sha256: new Bun.CryptoHasher("sha256").update(WORKING).digest("hex") });
  rmSync(join(folder, "index.ts"));
  const real = root.write(file, WORKING);
  symlinkSync(target, join(folder, "index.ts"));
  const alias = root.outside("alias");
  symlinkSync(root.path, alias);
  const entry = root.discover({ roots: [{ path: alias, required: true }] }).select("mine");
  if (!entry.trust) throw new Error("a drop-in without trust");
  // What runs are the bytes that were verified, though the file says otherwise by now.
  const dropIn = verifyDropIn(entry.main, entry.folder, entry.trust);
  if ("what" in dropIn) throw new Error(dropIn.what);
  writeFileSync(real, "throw new Error('swapped');");
  serveDropIn(dropIn);
  expect((await import(dropIn.main)).default.optionNames).toEqual([]);
});

test("a built-in whose code breaks is told like any other", async () => {
  using root = new TemporaryRoot();
  root.add("syntax", {}, "export const = 1;");
  const registry = root.discover({ embeddedRoot: root.path, roots: [] });
  expect((await faultOf(registry.load("syntax"))).message).toMatch(
    /\(built-in\) cannot be loaded: .*index\.ts:1:14/,
  );
});

test("an import that never settles is given up, without a worker too", async () => {
  using root = new TemporaryRoot();
  root.add("await", {}, "await new Promise(() => {});");
  const registry = root.discover({ embeddedRoot: root.path, roots: [] });
  const fault = await faultOf(loadPlugin(registry.select("await"), { timeoutMs: 50 }));
  expect(fault.message).toContain("within 50 ms");
});

test("built-ins load from the repository", async () => {
  using root = new TemporaryRoot();
  const registry = root.discover({ embeddedRoot: embeddedRoot(), roots: [] });
  for (const { type } of registry.rows) await registry.load(type);
  expect(registry.rows.map(({ status }) => status)).toEqual(registry.rows.map(() => "active" as const));
  expect(registry.rows.map(({ from }) => from)).toEqual(registry.rows.map(() => "built-in"));
});

test("checkBackend names the member that is missing", () => {
  const functions = { links() {}, publish() {}, mtu() {}, own() {}, peer() {} };
  expect(checkBackend({ mode: "declarative", ...functions }, "mine")).toHaveProperty("mode", "declarative");
  const wrong: readonly [unknown, string][] = [
    [undefined, "it is missing"],
    [{ mode: "passive" }, '"mode" is "passive"'],
    [{ mode: "declarative", ...functions, mtu: 1_450 }, '"mtu" is a number, not a function'],
    [{ mode: "active", prepare() {}, attach() {} }, '"sync" is missing, not a function'],
  ];
  for (const [value, expected] of wrong) expect(() => checkBackend(value, "mine")).toThrow(expected);
});
