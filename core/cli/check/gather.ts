import { readFileSync } from "node:fs";
import { isClockSynchronised } from "../../host/clock.ts";
import { run } from "../../host/exec.ts";
import { hasNetAdmin } from "../../host/privilege.ts";
import type { Manifest } from "../../registry/manifest.ts";
import { checkRequirements, thisMachine } from "../../registry/requirements.ts";
import type { HostSettings } from "./host.ts";
import { type CheckItem, item } from "./item.ts";

/** Reads what the host is set to; `external` is the interface between the hosts, where one was found. */
export function readHostSettings(external: string | undefined): HostSettings {
  const rpFilters = ["all", ...(external === undefined ? [] : [external])].map((dev) =>
    readNumber(`net/ipv4/conf/${dev}/rp_filter`),
  );
  return {
    uid: process.geteuid?.() ?? 0,
    netAdmin: hasNetAdmin(readText("/proc/self/status") ?? ""),
    now: Date.now(),
    synchronised: isClockSynchronised(),
    forwarding: {
      ipv4: readText("/proc/sys/net/ipv4/ip_forward"),
      ipv6: readText("/proc/sys/net/ipv6/conf/all/forwarding"),
    },
    rpFilter: Math.max(...rpFilters.map((value) => value ?? 0)),
    disableIpv6: readText("/proc/sys/net/ipv6/conf/all/disable_ipv6"),
    gcThresh3: {
      ipv4: readNumber("net/ipv4/neigh/default/gc_thresh3"),
      ipv6: readNumber("net/ipv6/neigh/default/gc_thresh3"),
    },
  };
}

/** What the chosen plugin needs of this machine: modules, commands, capabilities, variables. */
export async function checkMachine(manifest: Manifest): Promise<CheckItem> {
  const machine = thisMachine();
  const { kernelModules, commands, capabilities, env } = manifest.requires;
  const findings = [...checkRequirements(manifest, machine)];
  for (const name of kernelModules) {
    // Where no list of modules tells, only trying does.
    if (machine.hasModule(name) !== undefined || (await canMakeDevice(name)) !== false) continue;
    findings.push({
      code: "PLUGIN_REQUIREMENT_MISSING",
      severity: "error",
      title: `plugin "${manifest.name}" lacks something on this machine`,
      text: `the kernel makes no ${name} device`,
      fix: `modprobe ${name}; on some systems the module is in a package such as linux-modules-extra.`,
    });
  }
  const needs = [...kernelModules.map((name) => `module ${name}`), ...commands, ...capabilities, ...env];
  return item("machine", `plugin ${manifest.name}: ${needs.join(", ") || "needs nothing"}`, findings);
}

/** `ip link add type KIND` in a network namespace that ends with the command; undefined when that cannot be tried. */
async function canMakeDevice(kind: string): Promise<boolean | undefined> {
  const make = ["ip", "link", "add", "flannel-check", "type", kind, "id", "1", "dstport", "8472"];
  try {
    await run("unshare", ["--net", ...make], { timeout: 5_000, env: { LC_ALL: "C" } });
    return true;
  } catch (error) {
    const text = error instanceof Error ? error.message : "";
    return /not supported|unknown device type/i.test(text) ? false : undefined;
  }
}

function readText(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8").trim();
  } catch {
    return undefined;
  }
}

function readNumber(path: string): number | undefined {
  const text = readText(`/proc/sys/${path}`);
  return text === undefined || !/^\d+$/.test(text) ? undefined : Number(text);
}
