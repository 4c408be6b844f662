import { readFileSync } from "node:fs";
import type { Subnets } from "../lease/lease.ts";
import { firstHost, formatPrefix, parsePrefix } from "../net/prefix.ts";
import { Fault, toFault } from "../observe/fault.ts";
import { rehearseWrite, writeFileAtomically } from "./atomic-file.ts";

/** What container runtimes and CNI plugins read from `subnet.env`. */
export interface SubnetFileContent {
  readonly networks: Subnets;
  readonly subnets: Subnets;
  readonly mtu: number;
  readonly ipMasq: boolean;
}

/** Values of the last run; families that were absent or unreadable are missing. */
export interface PreviousSubnetFile {
  readonly networks: Subnets;
  readonly subnets: Subnets;
  /** MTU for containers, where the file has a usable one. */
  readonly mtu?: number;
  /** Why parts were ignored, for the log. */
  readonly problems: readonly string[];
}

/** The file's exact bytes, in upstream's order; a subnet is written as its first host address. */
export function renderSubnetFile(content: SubnetFileContent): string {
  const { networks, subnets } = content;
  const lines: string[] = [];
  if (networks.ipv4 && subnets.ipv4) {
    lines.push(`FLANNEL_NETWORK=${networks.ipv4}`, `FLANNEL_SUBNET=${gatewayOf(subnets.ipv4)}`);
  }
  if (networks.ipv6 && subnets.ipv6) {
    lines.push(`FLANNEL_IPV6_NETWORK=${networks.ipv6}`, `FLANNEL_IPV6_SUBNET=${gatewayOf(subnets.ipv6)}`);
  }
  lines.push(`FLANNEL_MTU=${content.mtu}`, `FLANNEL_IPMASQ=${content.ipMasq}`);
  return `${lines.join("\n")}\n`;
}

function gatewayOf(subnet: string): string {
  const prefix = parsePrefix(subnet);
  return prefix ? `${firstHost(prefix)}/${prefix.length}` : subnet;
}

/**
 * Reads a subnet file of any vintage: `export`, quotes, comments, CRLF and blank lines are fine; a comma list is
 * taken when exactly one entry of it is valid. Nothing in it can make this throw.
 */
export function parseSubnetFile(text: string): PreviousSubnetFile {
  const values = readVariables(text);
  const problems: string[] = [];
  const read = (name: string, family: 4 | 6) => readPrefix(name, values.get(name), family, problems);
  const mtu = Number(values.get("FLANNEL_MTU"));
  return {
    ...(Number.isInteger(mtu) && mtu > 0 ? { mtu } : {}),
    networks: pair(read("FLANNEL_NETWORK", 4), read("FLANNEL_IPV6_NETWORK", 6)),
    subnets: pair(read("FLANNEL_SUBNET", 4), read("FLANNEL_IPV6_SUBNET", 6)),
    problems,
  };
}

/** The variables of a subnet file as they stand there, without quotes and comments. */
export function readVariables(text: string): ReadonlyMap<string, string> {
  const values = new Map<string, string>();
  for (const line of text.split("\n")) {
    const match = /^(?:export\s+)?([A-Z0-9_]+)\s*=\s*(.*)$/.exec(line.trim());
    if (match?.[1] !== undefined && match[2] !== undefined) values.set(match[1], unquote(match[2]));
  }
  return values;
}

function unquote(value: string): string {
  const quoted = /^(["'])(.*)\1/.exec(value);
  if (quoted?.[2] !== undefined) return quoted[2];
  const comment = value.search(/(?:^|\s)#/);
  return comment < 0 ? value : value.slice(0, comment).trimEnd();
}

function readPrefix(
  name: string,
  value: string | undefined,
  family: 4 | 6,
  problems: string[],
): string | undefined {
  if (value === undefined || value === "") return undefined;
  const good: string[] = [];
  for (const entry of value.split(",")) {
    const prefix = parsePrefix(entry.trim());
    if (prefix?.family === family) good.push(formatPrefix(prefix));
    else problems.push(`${name}: "${entry.trim()}" is not an IPv${family} subnet`);
  }
  if (good.length > 1) problems.push(`${name} holds ${good.length} subnets, exactly one was expected`);
  return good.length === 1 ? good[0] : undefined;
}

function pair(ipv4: string | undefined, ipv6: string | undefined): Subnets {
  return { ...(ipv4 === undefined ? {} : { ipv4 }), ...(ipv6 === undefined ? {} : { ipv6 }) };
}

/** The values of the last run; a missing file gives empty ones, an unreadable one a problem. */
export function readSubnetFile(path: string): PreviousSubnetFile {
  try {
    return parseSubnetFile(readFileSync(path, "utf8"));
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === "ENOENT";
    return {
      networks: {},
      subnets: {},
      problems: missing ? [] : [`cannot read it: ${(error as Error).message}`],
    };
  }
}

/** Writes the file atomically unless it already has these bytes. Throws Fault `SUBNET_FILE` with path and cause. */
export function writeSubnetFile(path: string, content: SubnetFileContent): boolean {
  const text = renderSubnetFile(content);
  if (currentText(path) === text) return false;
  try {
    writeFileAtomically(path, text);
  } catch (error) {
    throw unwritable(path, error);
  }
  return true;
}

function unwritable(path: string, error: unknown): Fault {
  return toFault(
    error,
    "SUBNET_FILE",
    `cannot write --subnet-file ${path}: `,
    "Check that the folder exists or can be made, and is writable.",
  );
}

function currentText(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

/**
 * Throws Fault `SUBNET_FILE` when the file could not be written: a daemon that learns that only after it has a lease
 * would leave container run times with the subnet of the last run, or with none.
 */
export function assertSubnetFilePath(path: string): void {
  if (path === "" || path.endsWith("/")) {
    throw new Fault("SUBNET_FILE", `--subnet-file "${path}" does not name a file`, {
      hint: "Give the path of a file, e.g. /run/flannel/subnet.env.",
    });
  }
  try {
    rehearseWrite(path);
  } catch (error) {
    throw unwritable(path, error);
  }
}
