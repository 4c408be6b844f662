import { Fault } from "../../observe/fault.ts";
import { attempt, type Run } from "../command.ts";
import type { Family } from "../intent.ts";

/** iptables over nf_tables, or over the old tables of the kernel; neither shows the rules of the other. */
export type Variant = "nft" | "legacy";

/** The commands of one variant. */
export interface Toolset {
  readonly variant: Variant;
  /** IPv4 command that the others are named after: `iptables`, `iptables-nft` or `iptables-legacy`. */
  readonly command: string;
  /** 1.6.2 or newer: `iptables-restore` knows `--wait`, MASQUERADE knows `--random-fully`. */
  readonly recent: boolean;
}

/** The variants that are installed, and the one that plain `iptables` stands for. */
export interface Toolsets {
  readonly installed: readonly Toolset[];
  readonly usual: Variant | undefined;
}

/** `iptables-nft` → `ip6tables-nft` for IPv6. */
export function commandOf({ command }: Toolset, family: Family): string {
  return family === 4 ? command : command.replace(/^iptables/, "ip6tables");
}

/** Whether both commands that we need of a toolset are there for a family. */
export function servesFamily(tools: Toolset, family: Family, has: (command: string) => boolean): boolean {
  const command = commandOf(tools, family);
  return has(`${command}-save`) && has(`${command}-restore`);
}

/** Looks for the variants: by their own names (since 1.8), else by what `iptables --version` says of itself. */
export async function findToolsets(run: Run, has: (command: string) => boolean): Promise<Toolsets> {
  const plain = await readPlain(run, has);
  const installed: Toolset[] = [];
  for (const variant of ["nft", "legacy"] as const) {
    const command = `iptables-${variant}`;
    if (has(`${command}-save`) || has(`ip6tables-${variant}-save`)) {
      installed.push({ variant, command, recent: true });
    } else if (plain?.variant === variant) installed.push(plain);
  }
  return { installed, usual: plain?.variant ?? installed[0]?.variant };
}

async function readPlain(run: Run, has: (command: string) => boolean): Promise<Toolset | undefined> {
  const command = ["iptables", "ip6tables"].find(has);
  if (command === undefined) return undefined;
  try {
    const { stdout } = await attempt(run, command, ["--version"]);
    return parseVersion(stdout);
  } catch (error) {
    // Removed meanwhile, or hanging: as good as not installed.
    if (error instanceof Fault) return undefined;
    throw error;
  }
}

/** `iptables v1.8.9 (nf_tables)`; before 1.8 there is no word in brackets. */
export function parseVersion(text: string): Toolset {
  const [, major, minor, patch] = /v(\d+)\.(\d+)(?:\.(\d+))?/.exec(text) ?? [];
  const number = Number(major ?? 0) * 1_000_000 + Number(minor ?? 0) * 1_000 + Number(patch ?? 0);
  const recent = number >= 1_006_002;
  return { variant: text.includes("nf_tables") ? "nft" : "legacy", command: "iptables", recent };
}
