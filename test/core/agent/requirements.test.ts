import { expect, test } from "bun:test";
import { requireMachine } from "../../../core/agent/backend.ts";
import { Fault } from "../../../core/observe/fault.ts";
import { readManifest } from "../../../core/registry/manifest.ts";
import type { Machine } from "../../../core/registry/requirements.ts";
import { manifestFor } from "../registry/plugin-root.ts";

const machine: Machine = {
  hasModule: (name) => (name === "unknown" ? undefined : false),
  hasCommand: () => false,
  capabilities: 0n,
  env: {},
};

function require(requires: Record<string, readonly string[]>): Fault | undefined {
  try {
    requireMachine(readManifest(JSON.stringify(manifestFor("mine", { requires })), "plugin.json"), machine);
    return undefined;
  } catch (error) {
    if (error instanceof Fault) return error;
    throw error;
  }
}

test("what a machine lacks is refused before anything is made, all of it at once and with a hint each", () => {
  const fault = require({ kernelModules: ["wireguard"], commands: ["wg"], capabilities: ["CAP_NET_ADMIN"] });
  const all = fault ? [fault, ...fault.others] : [];
  expect(all.map(({ code }) => code)).toEqual(Array(3).fill("PLUGIN_REQUIREMENT_MISSING"));
  expect(all.map(({ message }) => message)).toEqual([
    expect.stringContaining('kernel module "wireguard" is missing'),
    expect.stringContaining('command "wg" is missing'),
    expect.stringContaining("capability CAP_NET_ADMIN is missing"),
  ]);
  for (const { hint } of all) expect(hint).not.toBe("");
});

test("what cannot be found out is no obstacle", () => {
  expect(require({ kernelModules: ["unknown"] })).toBeUndefined();
  expect(require({})).toBeUndefined();
});
