import { expect, test } from "bun:test";
import { chmodSync, chownSync, mkdirSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { Fault } from "../../../core/observe/fault.ts";
import { type PluginEntry, reasonOf } from "../../../core/registry/entry.ts";
import type { Registry } from "../../../core/registry/registry.ts";
import { TemporaryRoot, WORKING } from "./plugin-root.ts";

const sha256 = (text: string) => new Bun.CryptoHasher("sha256").update(text).digest("hex");

function entry(registry: Registry, name: string): PluginEntry {
  const found = registry.entries.find((each) => each.name === name);
  if (!found) throw new Error(`no plugin ${name}`);
  return found;
}

function faultOf(registry: Registry, type: string): Fault {
  try {
    registry.select(type);
  } catch (error) {
    if (error instanceof Fault) return error;
    throw error;
  }
  throw new Error(`${type} was selected`);
}

/** Expects one plugin in a state, told as a finding, as the reason of the entry and as the fault of `select`. */
function expectState(registry: Registry, name: string, state: string, ...words: string[]): void {
  const found = entry(registry, name);
  expect({ name, state: found.state, reason: reasonOf(found) }).toMatchObject({ name, state });
  const fault = faultOf(registry, name);
  expect(fault.code).toBe(`PLUGIN_${state.toUpperCase()}`);
  expect(fault.hint).not.toBe("");
  for (const word of words) {
    expect(reasonOf(found)).toContain(word);
    expect(`${fault.message}; ${fault.hint}`).toContain(word);
  }
}

test("a right plugin is available", () => {
  using root = new TemporaryRoot();
  const folder = root.add("mine", { backends: [{ type: "mine", aliases: ["my-own"], families: ["ipv4"] }] });
  const registry = root.discover();
  expect(registry.rows).toEqual([
    {
      type: "mine",
      aliases: ["my-own"],
      plugin: "mine",
      version: "1.2.3",
      from: folder,
      status: "available",
      reason: "",
    },
  ]);
  expect(registry.findings).toEqual([]);
  expect(registry.select("MINE").name).toBe("mine");
  expect(registry.select("my-own").name).toBe("mine");
});

test("dotfiles, *.disabled and files are no plugins; the others come sorted", () => {
  using root = new TemporaryRoot();
  for (const name of ["zeta", "alpha", "mid"]) root.add(name);
  root.add(".hidden");
  root.add("off.disabled");
  root.write("README.md", "notes");
  expect(root.discover().entries.map(({ name }) => name)).toEqual(["alpha", "mid", "zeta"]);
});

test("an unknown type lists the known ones and the nearest", () => {
  using root = new TemporaryRoot();
  root.add("wireguard-x");
  root.add("other");
  const fault = faultOf(root.discover(), "wiregard-x");
  expect(fault.code).toBe("BACKEND_UNKNOWN");
  expect(fault.message).toContain('"wiregard-x"');
  expect(fault.hint).toContain('Did you mean "wireguard-x"?');
  expect(fault.hint).toContain("other, wireguard-x");
});

test("invalid: bad JSON, unknown key, wrong name, missing manifest, missing main", () => {
  using root = new TemporaryRoot();
  root.add("bad-json");
  root.write("bad-json/plugin.json", '{\n  "schema": 1,\n  "name": bad\n}');
  root.add("bad-key", { mian: "index.ts" });
  root.add("bad-name", { name: "else", backends: [{ type: "bad-name", families: ["ipv4"] }] });
  mkdirSync(join(root.path, "bad-empty"));
  root.add("bad-main", {}, undefined);
  rmSync(join(root.path, "bad-main/index.ts"), { force: true });
  const registry = root.discover();
  expectState(registry, "bad-json", "invalid", "bad-json/plugin.json:3:11");
  expectState(registry, "bad-key", "invalid", 'key "mian": is not a known key (did you mean "main"?)');
  expectState(registry, "bad-name", "invalid", '"else" differs from the folder');
  expectState(registry, "bad-empty", "invalid", "plugin.json does not exist", "bad-empty.disabled");
  expectState(registry, "bad-main", "invalid", "bad-main/index.ts does not exist");
  expect(registry.findings.map(({ code }) => code)).toEqual(Array(5).fill("PLUGIN_INVALID"));
});

test("incompatible: another API generation or manifest schema, both sides named", () => {
  using root = new TemporaryRoot();
  root.add("future", { api: [2, 3] });
  root.add("schema", { schema: 2, invented: true });
  const registry = root.discover();
  expectState(registry, "future", "incompatible", "speaks plugin API 2, 3", "this flanneld speaks 1");
  expectState(registry, "schema", "incompatible", "manifest schema 2, this flanneld reads 1");
});

test("skipped: not for this machine, and no reason to bother anyone", () => {
  using root = new TemporaryRoot();
  root.add("windows", { os: ["win32"] });
  root.add("arm", { arch: ["aarch64"] });
  root.add("intel", { arch: ["amd64"] });
  const registry = root.discover({ platform: { os: "linux", arch: "x64" } });
  expectState(registry, "windows", "skipped", "win32", "linux on x64");
  expectState(registry, "arm", "skipped", "aarch64");
  expect(registry.select("intel").state).toBe("available");
  expect(registry.findings).toEqual([]);
});

test.each([
  ["main file", "mine/index.ts", 0o666],
  ["manifest", "mine/plugin.json", 0o664],
  ["folder", "mine", 0o777],
  ["root", ".", 0o775],
])("untrusted: %s others can write to", (_what, file, mode) => {
  using root = new TemporaryRoot();
  root.add("mine");
  const path = join(root.path, file);
  chmodSync(path, mode);
  expectState(root.discover(), "mine", "untrusted", `chmod go-w ${path}`, mode.toString(8));
});

test.each(["mine/index.ts", "mine/plugin.json", "mine", "."])("untrusted: %s of another user", (file) => {
  using root = new TemporaryRoot();
  root.add("mine");
  const path = join(root.path, file);
  chownSync(path, 12_345, 12_345);
  expectState(root.discover(), "mine", "untrusted", "belongs to uid 12345", `chown root: ${path}`);
  // Files of the user we run as are as good as root's.
  expect(root.discover({ euid: 12_345 }).select("mine").state).toBe("available");
});

test("untrusted: links that lead out of the root; links inside are fine", () => {
  using root = new TemporaryRoot();
  const folder = root.add("escape");
  rmSync(join(folder, "index.ts"));
  symlinkSync(root.write(root.outside("index.ts"), WORKING), join(folder, "index.ts"));
  const whole = root.outside("whole");
  root.write(join(whole, "plugin.json"), "{}");
  symlinkSync(whole, join(root.path, "whole"));
  const inside = root.add("inside");
  rmSync(join(inside, "index.ts"));
  root.write("inside/..data/index.ts", WORKING);
  symlinkSync("..data/index.ts", join(inside, "index.ts"));
  const registry = root.discover();
  expectState(registry, "escape", "untrusted", "leads out of the plugin root", root.outside("index.ts"));
  expectState(registry, "whole", "untrusted", "leads out of the plugin root");
  expect(registry.select("inside").state).toBe("available");
});

test("untrusted: a pipe in place of a file does not block", () => {
  using root = new TemporaryRoot();
  const folder = root.add("pipe");
  rmSync(join(folder, "plugin.json"));
  expect(Bun.spawnSync(["mkfifo", join(folder, "plugin.json")]).success).toBe(true);
  expectState(root.discover(), "pipe", "untrusted", "is not a regular file");
});

test("untrusted: a hash that does not fit, in the manifest or the lock file", () => {
  using root = new TemporaryRoot();
  root.add("right", { sha256: sha256(WORKING) });
  root.add("wrong", { sha256: sha256("else") });
  expect(root.discover().select("right").state).toBe("available");
  expectState(root.discover(), "wrong", "untrusted", sha256(WORKING), sha256("else"), "plugin.json wants");

  root.add("locked");
  root.add("unlisted");
  root.write("plugins.lock.json", JSON.stringify({ right: sha256(WORKING), locked: sha256("other") }));
  const registry = root.discover();
  expect(registry.select("right").state).toBe("available");
  expectState(registry, "locked", "untrusted", sha256(WORKING), "plugins.lock.json wants");
  expectState(registry, "unlisted", "untrusted", '"unlisted" is not listed in', "sha256sum");
});

test("a lock file that is broken or untrusted keeps every plugin of its root out", () => {
  using root = new TemporaryRoot();
  root.add("mine");
  const lock = root.write("plugins.lock.json", '{"mine": 3}');
  expectState(root.discover(), "mine", "untrusted", "plugins.lock.json:1:10", "must be text");
  root.write("plugins.lock.json", JSON.stringify({ mine: sha256(WORKING) }));
  expect(root.discover().select("mine").state).toBe("available");
  chmodSync(lock, 0o666);
  expectState(root.discover(), "mine", "untrusted", `chmod go-w ${lock}`);
});

test("conflict: the first keeps the type, the later one is told how to win", () => {
  using root = new TemporaryRoot();
  using other = new TemporaryRoot();
  root.add("first", { backends: [{ type: "wanted", families: ["ipv4"] }] });
  other.add("second", { backends: [{ type: "other", aliases: ["wanted"], families: ["ipv4"] }] });
  other.add("third", { backends: [{ type: "wanted", families: ["ipv4"] }], overrides: ["first"] });
  const roots = [root.path, other.path].map((path) => ({ path, required: true }));
  const registry = root.discover({ roots });
  expect(registry.select("wanted").name).toBe("first");
  expect(entry(registry, "second").state).toBe("conflict");
  expect(reasonOf(entry(registry, "second"))).toContain(
    'backend "wanted" is already served by plugin "first"',
  );
  expect(reasonOf(entry(registry, "third"))).toContain("--allow-override third");

  const allowed = root.discover({ roots, allowOverride: ["third"] });
  expect(allowed.select("wanted").name).toBe("third");
  expect(entry(allowed, "first").state).toBe("conflict");
  expect(reasonOf(entry(allowed, "first"))).toContain('replaced by plugin "third"');

  const refused = root.discover({ roots, allowOverride: ["second", "nobody"] });
  expect(refused.select("wanted").name).toBe("first");
  expect(refused.findings.filter(({ code }) => code === "PLUGIN_OVERRIDE_UNUSED")).toHaveLength(2);
});

test("conflict: an overridden plugin keeps the types that are not taken over", () => {
  using root = new TemporaryRoot();
  const families = ["ipv4"];
  root.add("a", {
    backends: [
      { type: "one", families },
      { type: "two", families },
    ],
  });
  root.add("b", { backends: [{ type: "two", families }], overrides: ["a"] });
  const registry = root.discover({ allowOverride: ["b"] });
  expect(registry.select("one").name).toBe("a");
  expect(registry.select("two").name).toBe("b");
  expect(entry(registry, "a").state).toBe("available");
});

test("conflict: a name that is taken, in another root", () => {
  using root = new TemporaryRoot();
  using other = new TemporaryRoot();
  root.add("mine");
  other.add("mine", { backends: [{ type: "else", families: ["ipv4"] }] });
  const roots = [root.path, other.path, root.path].map((path) => ({ path, required: true }));
  const registry = root.discover({ roots });
  expect(registry.entries.map(({ state }) => state)).toEqual(["available", "conflict"]);
  expect(faultOf(registry, "else").message).toContain('the name "mine" is already served');
});

test("plugins that cannot be used claim nothing", () => {
  using root = new TemporaryRoot();
  root.add("aaa", { api: [9], backends: [{ type: "wanted", families: ["ipv4"] }] });
  root.add("bbb", { os: ["win32"], backends: [{ type: "wanted", families: ["ipv4"] }] });
  root.add("ccc", { backends: [{ type: "wanted", families: ["ipv4"] }] });
  expect(root.discover().select("wanted").name).toBe("ccc");
});

test("a missing root is fine unless it was asked for", () => {
  using root = new TemporaryRoot();
  const path = root.outside("nowhere");
  expect(root.discover({ roots: [{ path, required: false }] }).findings).toEqual([]);
  const [finding] = root.discover({ roots: [{ path, required: true }] }).findings;
  expect(finding).toMatchObject({ code: "PLUGIN_DIR_UNREADABLE", severity: "warning" });
  expect(finding?.text).toContain(path);
});
