import { existsSync, readFileSync } from "node:fs";
import { release } from "node:os";
import type { Finding } from "../observe/finding.ts";
import { hasCapability } from "./capability-bits.ts";
import type { Manifest } from "./manifest.ts";

/** What a machine offers to plugins. Whatever cannot be found out is `undefined` and held against nobody. */
export interface Machine {
  /** Whether a kernel module is loaded, built in or can be loaded. */
  hasModule(name: string): boolean | undefined;
  hasCommand(name: string): boolean;
  /** Effective capability mask. */
  readonly capabilities: bigint | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Everything a plugin's manifest requires and this machine lacks, all at once. Starts and changes nothing. */
export function checkRequirements(manifest: Manifest, machine: Machine = thisMachine()): readonly Finding[] {
  const { kernelModules, commands, capabilities, env } = manifest.requires;
  const mask = machine.capabilities;
  return [
    ...kernelModules
      .filter((name) => machine.hasModule(name) === false)
      .map((name) =>
        missing(
          manifest,
          `kernel module "${name}"`,
          `install it for kernel ${release()}, then: modprobe ${name}`,
        ),
      ),
    ...commands
      .filter((name) => !machine.hasCommand(name))
      .map((name) => missing(manifest, `command "${name}"`, `install the package that has ${name}`)),
    ...capabilities
      .filter((name) => mask !== undefined && hasCapability(mask, name) === false)
      .map((name) =>
        missing(
          manifest,
          `capability ${name}`,
          `run flanneld as root or give it ${name} (systemd: AmbientCapabilities=${name}; Kubernetes: securityContext.capabilities.add)`,
        ),
      ),
    ...env
      .filter((name) => !machine.env[name])
      .map((name) => missing(manifest, `environment variable ${name}`, `set ${name} for flanneld`)),
  ];
}

function missing(manifest: Manifest, what: string, fix: string): Finding {
  return {
    code: "PLUGIN_REQUIREMENT_MISSING",
    severity: "error",
    title: `plugin "${manifest.name}" lacks something on this machine`,
    text: `${what} is missing`,
    fix,
  };
}

/** The machine this process runs on. */
export function thisMachine(): Machine {
  return {
    hasModule: findModule,
    hasCommand: (name) => Bun.which(name, { PATH: `${process.env.PATH ?? ""}:/usr/sbin:/sbin` }) !== null,
    capabilities: readCapabilities(),
    env: process.env,
  };
}

function readCapabilities(): bigint | undefined {
  const mask = /^CapEff:\s*([0-9a-f]+)$/m.exec(readText("/proc/self/status") ?? "")?.[1];
  return mask === undefined ? undefined : BigInt(`0x${mask}`);
}

/** Module files are named with dashes or underscores at will; the kernel holds both for the same. */
function findModule(name: string): boolean | undefined {
  const own = name.replaceAll("-", "_");
  if (existsSync(`/sys/module/${own}`)) return true;
  const folder = `/lib/modules/${release()}`;
  const lists = [readText(`${folder}/modules.builtin`), readText(`${folder}/modules.dep`)];
  // No module tree (a container, a monolithic kernel): only trying would tell.
  if (lists.every((list) => list === undefined)) return undefined;
  const file = new RegExp(`(^|/)${RegExp.escape(own).replaceAll("_", "[-_]")}\\.ko`, "m");
  return lists.some((list) => list !== undefined && file.test(list));
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
