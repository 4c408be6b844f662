import type { Explanation } from "../../agent/explain.ts";
import { canonicalAddress } from "../../net/prefix.ts";
import { Fault } from "../../observe/fault.ts";
import { escapeControls } from "../../observe/printable.ts";
import type { CommandLine } from "../flags.ts";
import { renderPairs, renderSeconds } from "../pairs.ts";
import { ask } from "./ask.ts";
import { renderEntries } from "./journal.ts";
import type { Answered } from "./status.ts";

/**
 * `flanneld explain IP [-o json]`: whose address it is, how this node reaches it and what led to that. Exit code 0 when
 * packets to it can be expected to arrive as far as this node is concerned, else 1.
 * @throws Fault `FLAG_INVALID` for what is no address, and as {@link ask}.
 */
export async function explain(line: CommandLine): Promise<Answered> {
  const address = canonicalAddress(line.operand);
  if (address === undefined) {
    const shown = JSON.stringify(line.operand.slice(0, 64).toWellFormed());
    throw new Fault("FLAG_INVALID", `argument IP: ${shown} is no IP address`, {
      hint: "usage: flanneld explain IP, such as flanneld explain 10.244.7.9",
    });
  }
  const explanation = (await ask(line, "explain IP", "/explain", { address })) as Explanation;
  const code = explanation.ok ? 0 : 1;
  if (line.output === "text") return { text: renderExplanation(explanation), code };
  const dated = <T extends { readonly at: number }>(entry: T) => ({
    ...entry,
    at: new Date(entry.at).toISOString(),
  });
  const { probe } = explanation;
  const shown = {
    ...explanation,
    ...(probe ? { probe: dated(probe) } : {}),
    journal: explanation.journal.map(dated),
  };
  return { text: `${JSON.stringify(shown, null, 2)}\n`, code };
}

/** The explanation for people. */
export function renderExplanation(explanation: Explanation): string {
  const { address, text, lease, node, backend, problems, objects, journal } = explanation;
  const pairs = renderPairs([
    ["ADDRESS", `${address}: ${text}`],
    ["LEASE", lease && `${lease.key}${lease.revision === undefined ? "" : `, revision ${lease.revision}`}`],
    ["NODE", node && renderNode(node)],
    ["BACKEND", backend && renderBackend(backend)],
    ["ROUTE", renderRoute(explanation)],
    ["STATE", renderState(explanation)],
    ["PROBE", renderProbe(explanation)],
    ...problems.map((problem) => ["PROBLEM", problem] as const),
  ]);
  const commands = objects.map(
    ({ command, error }) => `  ${escapeControls(error === undefined ? command : `${command}  # ${error}`)}\n`,
  );
  return [
    pairs,
    ...(commands.length > 0 ? [`What is kept in the kernel for it:\n${commands.join("")}`] : []),
    ...(journal.length > 0
      ? [`What led to it:\n${renderEntries(journal).replace(/^/gm, "  ").trimEnd()}\n`]
      : []),
  ].join("\n");
}

function renderNode({ id, publicIP, publicIPv6 }: NonNullable<Explanation["node"]>): string {
  const addresses = [publicIP, publicIPv6].filter((each) => each !== undefined).join(" ");
  return `${addresses || "no address"}${id === undefined ? "" : ` (${id})`}`;
}

function renderBackend({ type, data }: NonNullable<Explanation["backend"]>): string {
  return `${type || "none named"}${data === undefined || data === null ? "" : ` ${JSON.stringify(data)}`}`;
}

function renderRoute({ route }: Explanation): string {
  if (!route) return "none: the kernel cannot reach it";
  const { dev, via, src, mtu, up } = route;
  const way = [
    ...(via === undefined ? [] : ["via", via]),
    "dev",
    dev,
    ...(src === undefined ? [] : ["src", src]),
  ];
  return `${way.join(" ")}${mtu === undefined ? "" : `, MTU ${mtu}`}${up === false ? ", the device is down" : ""}`;
}

function renderState({ scope, ok, objects }: Explanation): string | undefined {
  if (scope !== "peer") return undefined;
  const refused = objects.filter((object) => object.error !== undefined).length;
  if (ok) return "everything is in place";
  return refused > 0 ? `${refused} of ${objects.length} objects are refused` : "not as it should be";
}

/** What the last probe found, or how to make one. */
function renderProbe({ scope, node, probe }: Explanation, now = Date.now()): string | undefined {
  if (scope !== "peer") return undefined;
  const command = `flanneld probe ${node?.publicIP ?? node?.publicIPv6 ?? ""}`.trimEnd();
  if (!probe) return `never since the daemon started: ${command}`;
  const { at, sent, received, rttMs, mtu, tcp, verdict } = probe;
  const passes = tcp === "accepted" || tcp === "refused" ? "passes" : tcp;
  const parts = [
    verdict,
    `${renderSeconds(Math.max(0, now - at) / 1000)} ago`,
    rttMs === undefined ? "no answer" : `${rttMs.toFixed(2)} ms`,
    received < sent ? `${sent - received} of ${sent} lost` : undefined,
    mtu === undefined ? undefined : `MTU ${mtu}`,
    passes === undefined ? undefined : `TCP ${passes}`,
  ];
  return `${parts.filter((part) => part !== undefined).join(", ")} (again: ${command})`;
}
