import { readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run as runCommand } from "../../../core/host/exec.ts";
import { openNftablesGeneration } from "../../../core/netlink/nftables-generation.ts";
import type { TrafficHost } from "../../../core/traffic/host.ts";
import type { TrafficIntent } from "../../../core/traffic/intent.ts";
import { inNamespace } from "../../lab/in-namespace.ts";
import { Namespace } from "../../lab/namespace.ts";

/** A namespace as the traffic rules see a machine, with everything they do to it written down. */
export interface Machine extends AsyncDisposable {
  readonly ns: Namespace;
  readonly host: TrafficHost;
  /** Lock file of iptables-legacy: its own, as the one in /run is everybody's. */
  readonly lockFile: string;
  /** Command lines run so far. */
  readonly commands: string[];
  /** Looks at the generation so far. */
  readonly looks: () => number;
}

/** `missing`: commands that are not installed, as a pattern. */
export async function openMachine(hint: string, missing = /^$/): Promise<Machine> {
  const ns = await Namespace.create(hint);
  const lockFile = join(tmpdir(), `${ns.name}.lock`);
  const generation = inNamespace(ns, openNftablesGeneration);
  const commands: string[] = [];
  let looks = 0;
  const host: TrafficHost = {
    run: (file, args, options = {}) => {
      commands.push([file, ...args].join(" "));
      const env = { ...options.env, XTABLES_LOCKFILE: lockFile };
      return runCommand("ip", ["netns", "exec", ns.name, file, ...args], { ...options, env });
    },
    has: (command) => !missing.test(command) && Bun.which(command) !== null,
    legacyTables: (family) =>
      inNamespace(ns, () =>
        readFileSync(`/proc/thread-self/net/ip${family === 6 ? "6" : ""}_tables_names`, "utf8")
          .split("\n")
          .filter(Boolean),
      ),
    ...(generation
      ? {
          generation: {
            close: generation.close,
            read: () => {
              looks++;
              return generation.read();
            },
          },
        }
      : {}),
  };
  return {
    ns,
    host,
    lockFile,
    commands,
    looks: () => looks,
    async [Symbol.asyncDispose]() {
      generation?.close();
      await ns[Symbol.asyncDispose]();
      rmSync(lockFile, { force: true });
    },
  };
}

/** The intent of the golden listings, dual stack. */
export const INTENT: TrafficIntent = {
  kind: "iptables",
  ipv4: { network: "10.244.0.0/16", subnet: "10.244.1.0/24", masqExclude: [] },
  ipv6: { network: "fd00:10:244::/48", subnet: "fd00:10:244:2f::/64", masqExclude: [] },
  masquerade: true,
  forward: true,
  fullyRandom: true,
};

/** What upstream's daemon leaves of these values in `iptables-save`, recorded with iptables 1.8.9. */
export const GOLDEN: Readonly<Record<4 | 6, readonly string[]>> = {
  4: golden("10.244.0.0/16", "10.244.1.0/24", "224.0.0.0/4"),
  6: golden("fd00:10:244::/48", "fd00:10:244:2f::/64", "ff00::/8"),
};

function golden(network: string, subnet: string, multicast: string): readonly string[] {
  const masq = '-m comment --comment "flanneld masq"';
  const forward = '-m comment --comment "flanneld forward"';
  return [
    ":FLANNEL-FWD - [0:0]",
    `-A FORWARD ${forward} -j FLANNEL-FWD`,
    `-A FLANNEL-FWD -s ${network} ${forward} -j ACCEPT`,
    `-A FLANNEL-FWD -d ${network} ${forward} -j ACCEPT`,
    ":FLANNEL-POSTRTG - [0:0]",
    `-A POSTROUTING ${masq} -j FLANNEL-POSTRTG`,
    `-A FLANNEL-POSTRTG -m mark --mark 0x4000/0x4000 ${masq} -j RETURN`,
    `-A FLANNEL-POSTRTG -s ${subnet} -d ${network} ${masq} -j RETURN`,
    `-A FLANNEL-POSTRTG -s ${network} -d ${subnet} ${masq} -j RETURN`,
    `-A FLANNEL-POSTRTG ! -s ${network} -d ${subnet} ${masq} -j RETURN`,
    `-A FLANNEL-POSTRTG -s ${network} ! -d ${multicast} ${masq} -j MASQUERADE --random-fully`,
    `-A FLANNEL-POSTRTG ! -s ${network} -d ${network} ${masq} -j MASQUERADE --random-fully`,
  ];
}

/** The lines of a save that are about us, in order; table filter first (a save lists the youngest table first). */
export function ours(save: string): string[] {
  const tables = save.split(/^(?=\*)/m).toSorted();
  return tables.flatMap((table) => table.split("\n").filter((line) => line.includes("FLANNEL-")));
}
