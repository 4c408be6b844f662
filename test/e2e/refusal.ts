import { expect } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { type Cluster, PREFIX } from "../lab/cluster.ts";
import { Daemon, type DaemonOptions } from "../lab/daemon.ts";
import type { Host } from "../lab/host.ts";
import { endpointFor } from "../lab/switch-etcd.ts";
import { storedLeases } from "./leases.ts";

/** What a daemon that could not start said. */
export interface Refusal {
  /** Code of the first error. */
  readonly code: string;
  readonly message: string;
  readonly hint: string;
  /** Everything it wrote. */
  readonly output: string;
}

/** Stands for every secret that is given to a daemon: it must not show up in anything that is written. */
export const SECRET = "s3cr3t-Hunter2";

/** Text that nothing written for an operator may hold: stack frames, also inside of JSON, and places in our source. */
const STACK = /(?:^|\\n)\s+at |node_modules|\$bunfs|(?:core|backends|plugins\/sdk)\/\S+\.ts:\d/m;

let runs = 0;

/**
 * Starts a daemon that must not be able to start, and checks what every refusal owes the operator: exit code 1, an
 * error with code and hint, no stack trace, and nothing half-made: no device, no key, no subnet file.
 */
export async function expectRefusal(
  cluster: Cluster,
  host: Host,
  options: DaemonOptions & { readonly prefix?: string; readonly deadline?: number } = {},
): Promise<Refusal> {
  const { prefix = PREFIX, deadline, ...rest } = options;
  const before = await storedLeases(cluster, prefix);
  const subnetFile = `${host.directory}/refused-${++runs}.env`;
  await using daemon = Daemon.start(host, {
    endpoints: endpointFor(host, cluster.switch),
    ...rest,
    flags: [`--etcd-prefix=${prefix}`, `--subnet-file=${subnetFile}`, ...(options.flags ?? [])],
  });
  const { code, signal } = await daemon.ended(deadline);
  const output = readFileSync(daemon.logPath, "utf8");
  expect({ code, signal, output }).toMatchObject({ code: 1, signal: null });
  expect(output).not.toMatch(STACK);
  expect(daemon.notifications).toEqual([]);
  expect(existsSync(subnetFile)).toBe(false);
  const links: { ifname: string }[] = await host.namespace.json("ip", "-j", "link", "show");
  expect(links.map(({ ifname }) => ifname).filter((name) => name.startsWith("flannel"))).toEqual([]);
  expect(await storedLeases(cluster, prefix)).toEqual(before);
  const refusal = readRefusal(output, daemon);
  expect(refusal.hint).not.toBe("");
  return refusal;
}

/** Before the log there is plain text: `flanneld: error CODE: message`, then `  hint: …`. */
function readRefusal(output: string, daemon: Daemon): Refusal {
  const [, code = "", message = "", hint = ""] =
    /^flanneld: error ([A-Z_]+): (.*)\n {2}hint: (.*)$/m.exec(output) ?? [];
  if (code !== "") return { code, message, hint, output };
  const error = daemon.lines.find(({ level }) => level === "error");
  return { code: String(error?.code), message: String(error?.msg), hint: String(error?.hint ?? ""), output };
}

/** Checks code and wording of a refusal, and that it tells no secret. */
export function expectWords(refusal: Refusal, code: string, words: string): void {
  expect(refusal).toMatchObject({ code });
  expect(`${refusal.message}\n${refusal.hint}`).toContain(words);
  expect(refusal.output).not.toContain(SECRET);
}

/** Writes a network config as it is given, valid or not. */
export async function putConfig({ etcd }: Cluster, prefix: string, config: string): Promise<void> {
  // Behind `--` since a value may begin with a dash, or be empty.
  await etcd.ctl("put", "--", `${prefix}/config`, config);
}
