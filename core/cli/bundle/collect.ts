import { readFileSync } from "node:fs";
import { run } from "../../host/exec.ts";
import { describeError, Fault } from "../../observe/fault.ts";

/** A file of the archive: its name, and how its text comes about. */
export type Source = readonly [name: string, text: () => Promise<string> | string];

/** A command whose output goes into the archive, named after the command. */
function command(folder: string, ...words: readonly [string, ...string[]]): Source {
  const [file, ...args] = words;
  const name = words.join("-").replace(/-{2,}/g, "-").replace(/\//g, "_");
  return [
    `${folder}/${name}.txt`,
    async () => {
      const { stdout, stderr } = await run(file, args, { timeout: 20_000, env: { LC_ALL: "C" } });
      return stdout + stderr;
    },
  ];
}

function file(folder: string, path: string): Source {
  return [`${folder}/${path.replace(/^\//, "").replaceAll("/", "_")}`, () => readFileSync(path, "utf8")];
}

/** The state of kernel, firewall and machine. `ip xfrm state` is left out: it shows keys. */
export function hostSources(legacyTables: readonly string[]): readonly Source[] {
  return [
    command("kernel", "ip", "-d", "link", "show"),
    command("kernel", "ip", "address", "show"),
    command("kernel", "ip", "-4", "route", "show", "table", "all"),
    command("kernel", "ip", "-6", "route", "show", "table", "all"),
    command("kernel", "ip", "rule", "show"),
    command("kernel", "ip", "-6", "rule", "show"),
    command("kernel", "ip", "nexthop", "show"),
    command("kernel", "ip", "neighbour", "show"),
    command("kernel", "bridge", "fdb", "show"),
    command(
      "kernel",
      "sysctl",
      "-a",
      "-r",
      "^net\\.(ipv[46]\\.(ip_forward|neigh\\.default|conf\\.(all|default|flannel))|bridge)",
    ),
    command("firewall", "nft", "list", "ruleset"),
    // Listing the tables of iptables-legacy makes them: only where they exist.
    ...(legacyTables.length > 0
      ? [command("firewall", "iptables-legacy-save"), command("firewall", "ip6tables-legacy-save")]
      : []),
    command("host", "uname", "-a"),
    command("host", "uptime"),
    file("host", "/etc/os-release"),
    file("host", "/proc/modules"),
    file("host", "/proc/net/udp"),
    file("host", "/proc/self/status"),
    command(
      "log",
      "journalctl",
      "--unit",
      "flanneld",
      "--lines",
      "5000",
      "--no-pager",
      "--output",
      "short-iso",
    ),
  ];
}

/** What came of collecting. */
export interface Collected {
  /** Text by name. */
  readonly files: Readonly<Record<string, string>>;
  /** What could not be had, and why. */
  readonly missing: readonly string[];
}

/** Reads all sources, whatever becomes of some; each text passes `clean`. */
export async function collect(
  sources: readonly Source[],
  clean: (text: string) => string,
): Promise<Collected> {
  const files: Record<string, string> = {};
  const missing: string[] = [];
  for (const [name, text] of sources) {
    try {
      files[name] = clean(await text());
    } catch (error) {
      const code = error instanceof Fault ? `${error.code}: ` : "";
      missing.push(clean(`${name}: ${code}${describeError(error)}`));
    }
  }
  return { files, missing };
}
