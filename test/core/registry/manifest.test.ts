import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import fc from "fast-check";
import { Fault } from "../../../core/observe/fault.ts";
import { readClaims, readManifest } from "../../../core/registry/manifest.ts";
import { manifestFor } from "./plugin-root.ts";

const FILE = "/etc/flannel/plugins/mine/plugin.json";
const repository = resolve(import.meta.dir, "../../..");

function messagesOf(source: string): string[] {
  try {
    readManifest(source, FILE);
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    expect(error.code).toBe("PLUGIN_MANIFEST");
    expect(error.hint).not.toBe("");
    return [error, ...error.others].map(({ message }) => message);
  }
  return [];
}

const changed = (changes: Record<string, unknown>) => JSON.stringify(manifestFor("mine", changes));

test("fills in the defaults", () => {
  const source = {
    schema: 1,
    name: "mine",
    version: "1.0.0",
    api: [1],
    backends: [{ type: "mine", families: ["ipv6"] }],
  };
  expect(readManifest(JSON.stringify(source), FILE)).toEqual({
    schema: 1,
    name: "mine",
    version: "1.0.0",
    api: [1],
    description: "",
    backends: [{ type: "mine", aliases: [], families: ["ipv6"], overhead: 0, stability: "experimental" }],
    main: "index.js",
    os: ["linux"],
    arch: ["*"],
    requires: { kernelModules: [], commands: [], capabilities: [], ports: [], env: [] },
    secrets: [],
    timeouts: { load: 10_000, prepare: 30_000, sync: 30_000, stop: 10_000 },
    overrides: [],
  });
});

test.each([
  [
    "an unknown key",
    { descripton: "x" },
    'key "descripton": is not a known key (did you mean "description"?)',
  ],
  [
    "an unknown key further down",
    { requires: { comands: [] } },
    'key "requires.comands": is not a known key (did you mean "commands"?)',
  ],
  [
    "an unknown key in a list",
    { backends: [{ type: "a", families: ["ipv4"], alias: [] }] },
    'key "backends[0].alias": is not a known key',
  ],
  ["a missing key", { version: undefined }, 'key "version": is missing'],
  ["a wrong type", { api: 1 }, 'key "api": 1 must be a list of contract generations'],
  ["no generation", { api: [] }, 'key "api": [] must list at least one'],
  ["a bad version", { version: "1.0" }, 'key "version": "1.0" must be a semantic version'],
  [
    "a bad type",
    { backends: [{ type: "Mine!", families: ["ipv4"] }] },
    'key "backends[0].type": "Mine!" must be 1 to 39 lower-case',
  ],
  [
    "no family",
    { backends: [{ type: "mine", families: [] }] },
    'key "backends[0].families": [] must name at least one',
  ],
  [
    "a bad family",
    { backends: [{ type: "mine", families: ["ipv5"] }] },
    'key "backends[0].families[0]": "ipv5" must be "ipv4" or "ipv6"',
  ],
  [
    "a bad overhead",
    { backends: [{ type: "mine", families: ["ipv4"], overhead: -1 }] },
    'key "backends[0].overhead": -1 must not be negative',
  ],
  ["a main outside", { main: "../index.ts" }, 'key "main": "../index.ts" must be a path inside'],
  ["an absolute main", { main: "/tmp/index.ts" }, 'key "main": "/tmp/index.ts" must be a path inside'],
  ["a CommonJS main", { main: "index.cjs" }, 'key "main": "index.cjs" must be an ES module'],
  ["a bad hash", { sha256: "abc" }, 'key "sha256": "abc" must be 64'],
  [
    "a bad capability",
    { requires: { capabilities: ["NET_ADMIN"] } },
    '"NET_ADMIN" must look like "CAP_NET_ADMIN"',
  ],
  ["a bad port", { requires: { ports: ["8472"] } }, '"8472" must look like "udp/8472"'],
  [
    "an endless time",
    { timeouts: { load: 1e12 } },
    'key "timeouts.load": 1000000000000 must be at most 300000 ms',
  ],
  ["text for an object", { requires: "ip" }, 'key "requires": "ip" must be an object'],
])("names file, place, key and value of %s", (_what, changes, expected) => {
  const [message] = messagesOf(changed(changes));
  expect(message).toContain(expected);
  expect(message).toMatch(/^\/etc\/flannel\/plugins\/mine\/plugin\.json:\d+:\d+: key "/);
});

test("tells all mistakes at once", () => {
  expect(messagesOf(changed({ api: "1", main: "x.py", secrets: 3 }))).toHaveLength(3);
});

test.each([
  ["a trailing comma", '{\n  "schema": 1,\n}', `${FILE}:2:14:`],
  ["a comment", "{\n  // mine\n}", `${FILE}:2:3:`],
  ["nothing", "", `${FILE}:1:1:`],
  ["a list", "[]", "the file must hold a JSON object"],
  ["null", "null", "the file must hold a JSON object"],
])("places the syntax error of %s", (_what, source, expected) => {
  expect(messagesOf(source)[0]).toContain(expected);
});

test("a byte order mark does no harm", () => {
  expect(messagesOf(`\ufeff${changed({})}`)).toEqual([]);
});

test("whatever the bytes are: a manifest or a fault, and claims never throw", () => {
  const keys = fc.constantFrom(
    "schema",
    "name",
    "version",
    "api",
    "backends",
    "main",
    "requires",
    "timeouts",
  );
  const documents = fc.oneof(
    fc.string(),
    fc.json(),
    fc.dictionary(keys, fc.jsonValue()).map((changes) => changed(changes)),
  );
  fc.assert(
    fc.property(documents, (source) => {
      messagesOf(source);
      expect(readClaims(source).types.every((type) => typeof type === "string")).toBe(true);
    }),
    { numRuns: 300 },
  );
});

test("the manifests of the built-ins and of the template are right", () => {
  const backends = join(repository, "backends");
  const folders = [
    ...readdirSync(backends).map((name) => join(backends, name)),
    join(repository, "plugins/template"),
  ];
  for (const folder of folders) {
    const file = join(folder, "plugin.json");
    expect(folder.endsWith(`/${readManifest(readFileSync(file, "utf8"), file).name}`)).toBe(true);
  }
});
