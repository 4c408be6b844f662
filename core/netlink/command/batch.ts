import { Fault } from "../../observe/fault.ts";
import { describeErrno, EINVAL, EPERM } from "../errno.ts";
import { permissionFault, type Refusal } from "../faults.ts";
import type { ChangeFailure, KernelChange } from "../kernel.ts";
import { isAlreadySo } from "../outcome.ts";
import { batchLines, toolOf } from "./lines.ts";
import { batchRefusals, refusalOf } from "./refusal.ts";
import { attempt, type Run } from "./run.ts";

/** Lines per run of a tool: a run costs some milliseconds, a line some ten microseconds. */
const MOST_LINES = 1000;
/** Pieces to cut a run into that ended early. */
const PIECES = 10;

/** Lines for one run of one tool, and the change each came from. */
interface Stretch {
  readonly tool: "ip" | "bridge";
  readonly lines: readonly string[];
  readonly positions: readonly number[];
}

/**
 * See Kernel.apply. The order holds across the tools: each switch from one to the other is a run of its own, so
 * callers do well to sort changes by kind.
 */
export async function applyByCommand(run: Run, changes: readonly KernelChange[]): Promise<ChangeFailure[]> {
  const failures: ChangeFailure[] = [];
  const fail = (index: number, refusal: Refusal) => {
    const change = changes[index];
    if (!change || isAlreadySo(change, refusal)) return;
    if (refusal.errno === EPERM) throw permissionFault("change the network configuration");
    failures.push({ index, change, errno: refusal.errno, text: describeErrno(refusal.errno, refusal.text) });
  };
  for (const stretch of stretches(changes, fail)) {
    // A change of two lines may be refused twice.
    for (const [index, refusal] of new Map(await runStretch(run, stretch))) fail(index, refusal);
  }
  return failures.sort((a, b) => a.index - b.index);
}

/** Cuts the changes into runs, one at a time; those that cannot be written down fail at once. */
function* stretches(
  changes: readonly KernelChange[],
  fail: (index: number, refusal: Refusal) => void,
): Generator<Stretch> {
  let tool: "ip" | "bridge" = "ip";
  let lines: string[] = [];
  let positions: number[] = [];
  for (const [index, change] of changes.entries()) {
    const next = toolOf(change.object);
    if (lines.length > 0 && (next !== tool || lines.length >= MOST_LINES)) {
      yield { tool, lines, positions };
      lines = [];
      positions = [];
    }
    tool = next;
    try {
      for (const line of batchLines(change)) {
        lines.push(line);
        positions.push(index);
      }
    } catch (error) {
      if (!(error instanceof Fault) || error.code !== "NETLINK_BAD_OBJECT") throw error;
      fail(index, { errno: EINVAL, text: error.message });
    }
  }
  if (lines.length > 0) yield { tool, lines, positions };
}

/** Refusals by position of the change. */
async function runStretch(run: Run, { tool, lines, positions }: Stretch): Promise<[number, Refusal][]> {
  const { stderr, failed } = await attempt(run, tool, ["-force", "-batch", "-"], `${lines.join("\n")}\n`);
  const { refusals, rest } = batchRefusals(stderr);
  if (failed && (refusals.size === 0 || rest !== "")) {
    // The tool ended at a line it does not name, `-force` or not. Again in smaller pieces, down to that line: doing
    // a change twice does no harm.
    if (refusalOf(rest).errno === EPERM) throw permissionFault("change the network configuration");
    if (lines.length === 1) return positions.map((position) => [position, refusalOf(stderr)]);
    const found: [number, Refusal][] = [];
    const size = Math.ceil(lines.length / PIECES);
    for (let from = 0; from < lines.length; from += size) {
      const piece = {
        tool,
        lines: lines.slice(from, from + size),
        positions: positions.slice(from, from + size),
      };
      found.push(...(await runStretch(run, piece)));
    }
    return found;
  }
  return [...refusals].flatMap(([line, refusal]): [number, Refusal][] => {
    const position = positions[line - 1];
    return position === undefined ? [] : [[position, refusal]];
  });
}
