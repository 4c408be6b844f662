import type { Explanation } from "../../core/agent/explain.ts";
import type { JournalEntry } from "../../core/agent/journal.ts";
import type { StatusReport } from "../../core/agent/status.ts";
import { executable } from "../lab/daemon.ts";
import type { Host } from "../lab/host.ts";
import type { Ran } from "../lab/namespace.ts";

/** An answer of the health server. */
export interface HttpAnswer {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

/** Asks the health server of a host from inside it; throws when nothing answers. */
export async function askHttp(
  host: Host,
  path: string,
  { port = 8081, method = "GET", address = "127.0.0.1" } = {},
): Promise<HttpAnswer> {
  const input = `${method} ${path} HTTP/1.1\r\nHost: flanneld\r\nConnection: close\r\n\r\n`;
  const { stdout, stderr } = await host.namespace.run(["socat", "-t10", "-", `TCP4:${address}:${port}`], {
    input,
  });
  const [, status] = /^HTTP\/1\.1 (\d{3}) /.exec(stdout) ?? [];
  if (status === undefined) throw new Error(`${method} ${path}: ${stderr || stdout}`);
  const end = stdout.indexOf("\r\n\r\n");
  const type = /^content-type: (.*)\r$/im.exec(stdout.slice(0, end + 2))?.[1] ?? "";
  return { status: Number(status), type, body: stdout.slice(end + 4) };
}

/** Runs a command of the executable in a host, with the host's subnet file. */
export function command(host: Host, ...words: readonly string[]): Promise<Ran> {
  return host.namespace.run([executable(), ...words, "--subnet-file", host.subnetFile]);
}

/** What `flanneld status -o json` says. */
export async function readStatus(host: Host): Promise<StatusReport> {
  return JSON.parse((await command(host, "status", "-o", "json")).stdout) as StatusReport;
}

/** What `flanneld explain -o json` says, with its exit code. */
export async function readExplanation(
  host: Host,
  address: string,
): Promise<Explanation & { exitCode: number }> {
  const { stdout, exitCode } = await command(host, "explain", address, "-o", "json");
  return { ...(JSON.parse(stdout) as Explanation), exitCode };
}

/** What `flanneld journal -o json` says. */
export async function readJournal(host: Host): Promise<readonly JournalEntry[]> {
  const { stdout } = await command(host, "journal", "-o", "json");
  return (JSON.parse(stdout) as { entries: readonly JournalEntry[] }).entries;
}
