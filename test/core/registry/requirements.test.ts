import { expect, test } from "bun:test";
import { readManifest } from "../../../core/registry/manifest.ts";
import { checkRequirements, type Machine, thisMachine } from "../../../core/registry/requirements.ts";
import { manifestFor } from "./plugin-root.ts";

const CAP_NET_ADMIN = 1n << 12n;

const machine: Machine = {
  hasModule: (name) => (name === "unknown" ? undefined : name === "vxlan"),
  hasCommand: (name) => name === "ip",
  capabilities: CAP_NET_ADMIN,
  env: { TOKEN: "x", EMPTY: "" },
};

function check(requires: Record<string, readonly string[]>, on: Machine = machine): readonly string[] {
  const manifest = readManifest(JSON.stringify(manifestFor("mine", { requires })), "plugin.json");
  return checkRequirements(manifest, on).map(({ text }) => text);
}

test("nothing is missing", () => {
  expect(
    check({ kernelModules: ["vxlan"], commands: ["ip"], capabilities: ["CAP_NET_ADMIN"], env: ["TOKEN"] }),
  ).toEqual([]);
});

test("everything that is missing is told at once", () => {
  const requires = {
    kernelModules: ["wireguard"],
    commands: ["wg"],
    capabilities: ["CAP_NET_RAW"],
    env: ["EMPTY"],
  };
  expect(check(requires)).toEqual([
    'kernel module "wireguard" is missing',
    'command "wg" is missing',
    "capability CAP_NET_RAW is missing",
    "environment variable EMPTY is missing",
  ]);
});

test("what cannot be found out is not held against the plugin", () => {
  expect(check({ kernelModules: ["unknown"], capabilities: ["CAP_OF_TOMORROW"] })).toEqual([]);
  expect(check({ capabilities: ["CAP_NET_RAW"] }, { ...machine, capabilities: undefined })).toEqual([]);
});

test("this machine has the loopback of its kernel, a shell, and root's capabilities", () => {
  const here = thisMachine();
  expect(here.hasCommand("sh")).toBe(true);
  expect(here.hasCommand("no-such-command")).toBe(false);
  expect(check({ capabilities: ["CAP_NET_ADMIN"] }, here)).toEqual([]);
  // A parameter of the kernel itself: /sys/module lists built-in modules that have any.
  expect(here.hasModule("kernel")).toBe(true);
});
