import { describeErrno, ENOENT, ESRCH } from "../errno.ts";
import { IPPROTO_ESP } from "../families/xfrm-constants.ts";
import { refusalFault } from "../faults.ts";
import type {
  XfrmChange,
  XfrmDirection,
  XfrmFailure,
  XfrmPolicyState,
  XfrmState,
  XfrmTunnel,
} from "../xfrm-objects.ts";
import { refusalOf } from "./refusal.ts";
import { attempt, command, type Run } from "./run.ts";

/** Names that `ip xfrm` prints for protocols (rt_names). */
const PROTOCOLS: Readonly<Record<string, number>> = { esp: IPPROTO_ESP, ah: 51, comp: 108 };

/** `ip xfrm policy list` */
export async function readPoliciesByCommand(run: Run): Promise<XfrmPolicyState[]> {
  return parsePolicies(await list(run, "policy"));
}

/** `ip xfrm state list nokeys` */
export async function readStatesByCommand(run: Run): Promise<XfrmState[]> {
  return parseStates(await list(run, "state", "nokeys"));
}

/** One command per change; see Kernel.applyXfrm. */
export async function applyXfrmByCommand(run: Run, changes: readonly XfrmChange[]): Promise<XfrmFailure[]> {
  const failures: XfrmFailure[] = [];
  for (const change of changes) {
    const refusal = await command(run, "ip", ["xfrm", ...argumentsOf(change)]);
    if (refusal === undefined) continue;
    const { errno, text } = refusal;
    if (change.action === "delete" && (errno === ENOENT || errno === ESRCH)) continue;
    failures.push({ change, text: describeErrno(errno, text) });
  }
  return failures;
}

async function list(run: Run, ...what: readonly string[]): Promise<string> {
  const { stdout, stderr, failed } = await attempt(run, "ip", [
    "xfrm",
    what[0] ?? "",
    "list",
    ...what.slice(1),
  ]);
  if (failed) throw refusalFault(`list the IPsec ${what[0]}`, refusalOf(stderr));
  return stdout;
}

function argumentsOf(change: XfrmChange): string[] {
  if ("state" in change) {
    const { src, dst, spi, protocol } = change.state;
    const name = Object.keys(PROTOCOLS).find((each) => PROTOCOLS[each] === protocol) ?? String(protocol);
    return ["state", "delete", "src", src, "dst", dst, "proto", name, "spi", String(spi)];
  }
  const { src, dst, direction } = change.policy;
  const which = ["src", src, "dst", dst, "dir", direction];
  if (change.action === "delete") return ["policy", "delete", ...which];
  const { tunnel } = change.policy;
  const template = ["tmpl", "src", tunnel.src, "dst", tunnel.dst, "proto", "esp"];
  return ["policy", "update", ...which, ...template, "reqid", String(tunnel.reqid), "mode", "tunnel"];
}

/** Reads what `ip xfrm policy list` prints: a block per policy, its first line not indented. */
export function parsePolicies(text: string): XfrmPolicyState[] {
  return blocksOf(text).flatMap((block): XfrmPolicyState[] => {
    const [, src = "", dst = ""] = /^src (\S+) dst (\S+)/.exec(block) ?? [];
    const direction = /^\s+dir (in|out|fwd)\b/m.exec(block)?.[1] as XfrmDirection | undefined;
    if (src === "" || direction === undefined) return [];
    const tunnel = tunnelOf(block);
    return [{ src, dst, direction, ...(tunnel ? { tunnel } : {}) }];
  });
}

function tunnelOf(block: string): XfrmTunnel | undefined {
  const templates = [
    ...block.matchAll(/tmpl src (\S+) dst (\S+)\s+proto (\w+)(?: spi \S+)? reqid (\d+)\S* mode (\w+)/g),
  ];
  const [only, more] = templates;
  if (!only || more || only[3] !== "esp" || only[5] !== "tunnel") return undefined;
  return { src: only[1] ?? "", dst: only[2] ?? "", reqid: Number(only[4]) };
}

/** Reads what `ip xfrm state list` prints. */
export function parseStates(text: string): XfrmState[] {
  return blocksOf(text).flatMap((block): XfrmState[] => {
    const [, src = "", dst = ""] = /^src (\S+) dst (\S+)/.exec(block) ?? [];
    const [, proto = "", spi = "", reqid, mode] =
      /proto (\w+) spi (0x[0-9a-f]+)\S* reqid (\d+)\S* mode (\w+)/.exec(block) ?? [];
    if (src === "" || spi === "") return [];
    return [
      {
        src,
        dst,
        spi: Number(spi),
        protocol: PROTOCOLS[proto] ?? 0,
        reqid: Number(reqid),
        mode: mode === "tunnel" || mode === "transport" ? mode : "other",
      },
    ];
  });
}

function blocksOf(text: string): readonly string[] {
  return text.split(/^(?=\S)/m);
}
