import { readFileSync } from "node:fs";
import { run } from "../../host/exec.ts";
import { describeError, Fault } from "../../observe/fault.ts";

/** A file of the archive: its name, and how its text comes about. */
export type Source = readonly [name: string, text: () => Promise<string> | string];

/** A command whose output goes into the archive. */
function command(name: string, file: string, ...args: readonly string[]): Source {
  return [
    name,
    async () => {
      const { stdout, stderr } = await run(file, args, { timeout: 20_000, env: { LC_ALL: "C" } });
      return stdout + stderr;
    },
  ];
}

function file(name: string, path: string): Source {
  return [name, () => readFileSync(path, "utf8")];
}

/** What decides about forwarding, filtering, neighbours and IPv6, and on our devices. */
const SYSCTLS = "^net\\.(ipv[46]\\.(ip_forward|neigh\\.default|conf\\.(all|default|flannel))|bridge)";

/** The state of kernel, firewall and machine. `ip xfrm state` is left out: it shows keys. */
export function hostSources(legacyTables: readonly string[]): readonly Source[] {
  return [
    command("kernel/links.txt", "ip", "-d", "link", "show"),
    command("kernel/addresses.txt", "ip", "address", "show"),
    command("kernel/routes-ipv4.txt", "ip", "-4", "route", "show", "table", "all"),
    command("kernel/routes-ipv6.txt", "ip", "-6", "route", "show", "table", "all"),
    command("kernel/rules-ipv4.txt", "ip", "-4", "rule", "show"),
    command("kernel/rules-ipv6.txt", "ip", "-6", "rule", "show"),
    command("kernel/nexthops.txt", "ip", "nexthop", "show"),
    command("kernel/neighbours.txt", "ip", "neighbour", "show"),
    command("kernel/fdb.txt", "bridge", "fdb", "show"),
    command("kernel/sysctls.txt", "sysctl", "-a", "-r", SYSCTLS),
    command("firewall/nft.txt", "nft", "list", "ruleset"),
    command("firewall/iptables-nft.txt", "iptables-nft-save"),
    command("firewall/ip6tables-nft.txt", "ip6tables-nft-save"),
    // Listing the tables of iptables-legacy makes them: only where they exist.
    ...(legacyTables.length > 0
      ? [
          command("firewall/iptables-legacy.txt", "iptables-legacy-save"),
          command("firewall/ip6tables-legacy.txt", "ip6tables-legacy-save"),
        ]
      : []),
    command("host/uname.txt", "uname", "-a"),
    command("host/uptime.txt", "uptime"),
    file("host/os-release", "/etc/os-release"),
    file("host/modules", "/proc/modules"),
    file("host/udp", "/proc/net/udp"),
    file("host/udp6", "/proc/net/udp6"),
    command(
      "log/flanneld.log",
      "journalctl",
      "--unit=flanneld",
      "--lines=5000",
      "--no-pager",
      "--output=short-iso",
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
