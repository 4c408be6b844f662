/**
 * Who may import whom. Floors, top down; an arrow goes down, or to another room of its floor as long as no circle
 * comes of it:
 *
 *   main → cli → agent → traffic, registry → host, dataplane → netlink, lease, config → net, observe, retry
 */
import { expect, test } from "bun:test";
import { findCircles, graphOf, type Import, importsOf } from "./graph.ts";
import { listFiles, listSources, readSource } from "./sources.ts";

const FLOORS: readonly (readonly string[])[] = [
  ["core/main.ts"],
  ["core/cli"],
  ["core/agent"],
  ["core/traffic", "core/registry"],
  ["core/host", "core/dataplane"],
  ["core/netlink", "core/lease", "core/config"],
  ["core/net", "core/observe", "core/retry"],
];

/** Plain data and values that anybody may use, the plugin contract included; they use nothing but each other. */
const LEAVES = [
  /^core\/net\//,
  /^core\/netlink\/((\w+-)?objects|kernel)\.ts$/,
  /^core\/lease\/lease\.ts$/,
  /^core\/host\/child-spec\.ts$/,
  /^core\/observe\/(finding|fault)\.ts$/,
];

/** Rooms that run plugins, and so may know the contract; only the registry hands it out at run time. */
const KNOW_THE_CONTRACT = ["core/agent", "core/cli", "core/dataplane", "core/registry"];

const CONTRACT = "flannel/sdk";

/** What a cloud's maker offers for calling it: packages of one backend each, imported when that is used. */
const CLOUD_PACKAGES: Readonly<Record<string, readonly string[]>> = {
  "backends/aws-vpc/": ["@aws-sdk/client-ec2"],
  "backends/gce/": ["google-auth-library"],
  "backends/ali-vpc/": ["@alicloud/openapi-core", "@alicloud/credentials"],
  "backends/tencent-vpc/": ["tencentcloud-sdk-nodejs-common"],
};

/** The one folder outside core that makes system calls. */
const CALLS_THE_KERNEL = /^backends\/udp\/system\//;
const sources = listSources();
const imports: readonly Import[] = sources.flatMap((path) => importsOf(path));

/** `core/lease/etcd/rpc.ts` lies in `core/lease`. */
function roomOf(path: string): string {
  return /^core\/[^/]+/.exec(path)?.[0] ?? path;
}

function floorOf(path: string): number {
  return FLOORS.findIndex((rooms) => rooms.includes(roomOf(path)));
}

function isLeaf(path: string): boolean {
  return LEAVES.some((leaf) => leaf.test(path));
}

/** Imports that break a rule, for a message. */
function show(broken: readonly Import[]): string[] {
  return broken.map(({ from, to }) => `${from} imports ${to}`);
}

test("imports are read as they are written", () => {
  const text = `
    // import "commented";
    import { a } from "./a.ts";
import { b, type B } from "./b.ts";
import {
  type C,
  type D,
} from "../c.ts";
import type E from "e";
export * from "f";
import "g";
export const from = "none";
const h = await import("h");
type I = import("i").I;
`.replace("    import { a", "import { a");
  expect(importsOf("core/x/y.ts", text).map(({ to, typeOnly, lazy }) => [to, typeOnly, lazy])).toEqual([
    ["core/x/a.ts", false, false],
    ["core/x/b.ts", false, false],
    ["core/c.ts", true, false],
    ["e", true, false],
    ["f", false, false],
    ["g", false, false],
    ["h", false, true],
    ["i", true, true],
  ]);
  expect(imports.length).toBeGreaterThan(500);
});

test("circles are found", () => {
  const graph = graphOf([
    ["a", "b"],
    ["b", "c"],
    ["c", "b"],
    ["c", "d"],
  ]);
  expect(findCircles(graph)).toEqual([["b", "c"]]);
});

test("every file of core lies in a room with a floor", () => {
  expect(sources.filter((path) => path.startsWith("core/") && floorOf(path) < 0)).toEqual([]);
});

test("every relative import names a file, with its extension", () => {
  const files = new Set(listFiles());
  const own = imports.filter(({ to }) => /^(core|backends|plugins|dist|test)\//.test(to));
  expect(show(own.filter(({ to }) => !files.has(to)))).toEqual([]);
});

test("no arrow goes up", () => {
  const inCore = imports.filter(({ from, to }) => from.startsWith("core/") && to.startsWith("core/"));
  expect(show(inCore.filter(({ from, to }) => !isLeaf(to) && floorOf(to) < floorOf(from)))).toEqual([]);
});

test("no rooms go round in a circle", () => {
  const between = imports
    .filter(({ from, to }) => from.startsWith("core/") && to.startsWith("core/"))
    .filter(({ to }) => !isLeaf(to))
    .map(({ from, to }) => [roomOf(from), roomOf(to)] as const)
    .filter(([from, to]) => from !== to);
  expect(findCircles(graphOf(between))).toEqual([]);
});

test("no files go round in a circle", () => {
  const files = new Set(sources);
  const between = imports.filter(({ to }) => files.has(to)).map(({ from, to }) => [from, to] as const);
  expect(findCircles(graphOf(between))).toEqual([]);
});

test("leaves import nothing but each other", () => {
  const broken = imports.filter(({ from, to }) => isLeaf(from) && to.startsWith("core/") && !isLeaf(to));
  expect(show(broken)).toEqual([]);
});

test("the contract imports leaves and built-in modules only", () => {
  const broken = imports
    .filter(({ from }) => from.startsWith("plugins/sdk/"))
    .filter(({ to }) => !to.startsWith("plugins/sdk/") && !to.startsWith("node:") && !isLeaf(to));
  expect(show(broken)).toEqual([]);
});

test("core knows the contract where plugins are run, elsewhere not", () => {
  const broken = imports
    .filter(({ from }) => from.startsWith("core/"))
    .filter(({ to }) => to === CONTRACT || to.startsWith("plugins/"))
    .filter(({ from, typeOnly }) => {
      const room = roomOf(from);
      return !KNOW_THE_CONTRACT.includes(room) || (room !== "core/registry" && !typeOnly);
    });
  expect(show(broken)).toEqual([]);
});

test("core knows no backend by name", () => {
  expect(
    show(imports.filter(({ from, to }) => from.startsWith("core/") && to.startsWith("backends/"))),
  ).toEqual([]);
});

test("a backend imports the contract, valibot, built-in modules, its own folder and its cloud's package", () => {
  const plugins = imports.filter(({ from }) => /^(backends\/|plugins\/template\/)/.test(from));
  expect(plugins.length).toBeGreaterThan(0);
  const broken = plugins.filter(({ from, to }) => {
    const folder = /^[^/]+\/[^/]+\//.exec(from)?.[0] ?? "";
    return (
      to !== CONTRACT &&
      to !== "valibot" &&
      !to.startsWith("node:") &&
      !to.startsWith(folder) &&
      !CLOUD_PACKAGES[folder]?.includes(to) &&
      !(to === "bun:ffi" && CALLS_THE_KERNEL.test(from))
    );
  });
  expect(show(broken)).toEqual([]);
});

test("foreign functions are called from netlink and host only, and where a backend moves packets itself", () => {
  const broken = imports
    .filter(({ to }) => to === "bun:ffi")
    .filter(({ from }) => !CALLS_THE_KERNEL.test(from));
  expect(show(broken.filter(({ from }) => !["core/netlink", "core/host"].includes(roomOf(from))))).toEqual(
    [],
  );
});

const STARTERS = ["core/host/exec.ts", "core/host/exec-group.ts", "core/host/process.ts"];

test("processes are started through core/host only", () => {
  const starts = /\bBun\.(?:spawn|spawnSync|\$)|\bBun\s*\$`|"(?:node:)?child_process"|"execa"/;
  const broken = sources.filter((path) => starts.test(readSource(path)) && !STARTERS.includes(path));
  expect(broken).toEqual([]);
});

test("heavy packages are loaded when they are needed", () => {
  const names = ["etcd3", "execa", ...Object.values(CLOUD_PACKAGES).flat()];
  const heavy = imports.filter(({ to }) => names.includes(to));
  expect(new Set(heavy.map(({ to }) => to))).toEqual(new Set(names));
  // A module that is itself loaded when it is needed may name what it needs: the rest is left out of the executable.
  const isLoadedLater = (path: string) => {
    const users = imports.filter(({ to, typeOnly }) => to === path && !typeOnly);
    return users.length > 0 && users.every(({ lazy }) => lazy);
  };
  const early = heavy.filter(({ from, lazy, typeOnly }) => !lazy && !typeOnly && !isLoadedLater(from));
  expect(show(early)).toEqual([]);
});
