import { readFileSync } from "node:fs";

/** One time that a daemon's event loop was held up. */
export interface LoopBlock {
  /** Wall clock when it began and ended, ms since the epoch. */
  readonly begin: number;
  readonly end: number;
  /** How long the loop did not turn although the process had a CPU, ms. */
  readonly blocked: number;
}

/** Reads what loop-probe.ts wrote; an unfinished last line is left out. */
export function readLoopBlocks(path: string): readonly LoopBlock[] {
  return parseLoopBlocks(readFileSync(path, "utf8"));
}

/** Parses the probe's lines. What the thread waited for a CPU is the machine's doing and is taken off. */
export function parseLoopBlocks(text: string): readonly LoopBlock[] {
  return text
    .split("\n")
    .slice(0, -1)
    .map((line) => {
      const { end, late, waited } = JSON.parse(line) as { end: number; late: number; waited: number };
      return { begin: end - late, end, blocked: Math.max(0, late - waited) };
    });
}

/** The longest block that began in `[from, to)` (ms since the epoch), 0 for none. */
export function longestBlock(blocks: readonly LoopBlock[], from: number, to: number): number {
  return Math.max(
    0,
    ...blocks.filter(({ begin }) => begin >= from && begin < to).map(({ blocked }) => blocked),
  );
}
