import type { StatusReport } from "../../agent/status.ts";
import type { CommandLine } from "../flags.ts";
import { renderPairs, renderSeconds } from "../pairs.ts";
import { renderTable } from "../table.ts";
import { ask } from "./ask.ts";

/** Text to print, and the exit code. */
export interface Answered {
  readonly text: string;
  readonly code: 0 | 1;
}

/** `flanneld status [-o json]`: how the daemon on this host stands. Exit code 0 when it is ready, 1 when not. */
export async function showStatus(line: CommandLine): Promise<Answered> {
  const report = (await ask(line, "status", "/status")) as StatusReport;
  const text = line.output === "json" ? `${JSON.stringify(report, null, 2)}\n` : renderStatus(report);
  return { text, code: report.ready ? 0 : 1 };
}

/** The report for people. */
export function renderStatus(report: StatusReport): string {
  const { version, commit, pid, uptimeSeconds, store, node, config, backend, findings } = report;
  const pairs = renderPairs([
    ["STATE", report.ready ? "ready" : `not ready: ${report.reasons.map(({ code }) => code).join(", ")}`],
    ["DAEMON", `${version}${commit ? ` (${commit})` : ""}, pid ${pid}, up ${renderSeconds(uptimeSeconds)}`],
    ["NODE", node?.id],
    ["INTERFACE", renderInterface(report)],
    ["STORE", store],
    ["CONFIG", config && `${config.source}, revision ${config.revision}`],
    ["BACKEND", backend && `${backend.type} (plugin ${backend.plugin} ${backend.version})`],
    ["DATA PATH", renderDetails(backend?.details)],
    ["LEASE", renderLease(report)],
    ["PEERS", renderPeers(report)],
    ["LOOPS", renderLoops(report)],
  ]);
  if (findings.length === 0) return pairs;
  const rows = findings.map(({ severity, code, since, subject, title, text }) => [
    severity,
    code,
    since.replace(/\.\d+Z$/, "Z"),
    `${title}${subject === "" || text.includes(subject) ? "" : ` (${subject})`}: ${text}`,
  ]);
  const fixes = findings.map(({ code, fix }) => `${code}: ${fix}\n`);
  return [
    pairs,
    renderTable(["SEVERITY", "CODE", "SINCE", "FINDING"], rows),
    `What to do:\n${[...new Set(fixes)].map((fix) => `  ${fix}`).join("")}`,
  ].join("\n");
}

function renderInterface({ interface: external }: StatusReport): string | undefined {
  if (!external) return undefined;
  const { name, mtu, ipv4, ipv6, publicIP, publicIPv6, reason } = external;
  const published = [publicIP, publicIPv6].filter(
    (each) => each !== undefined && each !== ipv4 && each !== ipv6,
  );
  const addresses = [ipv4, ipv6].filter(Boolean).join(" ");
  return `${name} ${addresses}, MTU ${mtu}${published.length > 0 ? `, published as ${published.join(" ")}` : ""} (${reason})`;
}

function renderLease({ lease }: StatusReport): string | undefined {
  if (!lease) return undefined;
  const { key, state, secondsLeft, origin } = lease;
  const left = secondsLeft === undefined ? "no end (a reservation)" : `${renderSeconds(secondsLeft)} left`;
  return `${key}, ${state}, ${left}, origin ${origin}`;
}

function renderDetails(details: Readonly<Record<string, string>> = {}): string | undefined {
  const parts = Object.entries(details).map(([name, value]) => `${name} ${value}`);
  return parts.length === 0 ? undefined : parts.join("; ");
}

function renderPeers({ peers }: StatusReport): string {
  const { wanted, programmed, refused, unusable, rejected } = peers;
  const counts = { refused, unusable, rejected };
  const bad = Object.entries(counts).filter(([, number]) => number > 0);
  return [`${programmed} of ${wanted} programmed`, ...bad.map(([what, number]) => `${number} ${what}`)].join(
    ", ",
  );
}

function renderLoops({ loops }: StatusReport): string {
  return loops
    .map(({ name, restarts, overdueSeconds }) => {
      const notes = [
        ...(restarts > 0 ? [`restarted ${restarts} times`] : []),
        ...(overdueSeconds === undefined ? [] : [`overdue for ${overdueSeconds} s`]),
      ];
      return notes.length === 0 ? name : `${name} (${notes.join(", ")})`;
    })
    .join(", ");
}
