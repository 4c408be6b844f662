import { readFileSync } from "node:fs";
import { bindLibc } from "../netlink/libc.ts";
import { type AddressRange, findEmbeddedProgram, isPristine } from "./embedded-program.ts";

/** madvise(2): the pages may be dropped and are read from the file again when needed. */
const MADV_DONTNEED = 4;

/**
 * The mappings in the text of /proc/PID/smaps that can be dropped without losing anything: backed by a file, not
 * writable, and without a page of their own (relocations are written before a mapping is made read-only).
 */
export function findDroppable(smaps: string): readonly AddressRange[] {
  const ranges: AddressRange[] = [];
  for (const mapping of smaps.split(/^(?=[0-9a-f]+-[0-9a-f]+ )/m)) {
    const head = /^([0-9a-f]+)-([0-9a-f]+) r-[x-]p \S+ \S+ [1-9]\d*\s+\//.exec(mapping);
    if (!head?.[1] || !head[2] || !/^Anonymous:\s+0 kB$/m.test(mapping)) continue;
    ranges.push({ start: Number.parseInt(head[1], 16), end: Number.parseInt(head[2], 16) });
  }
  return ranges;
}

/** The whole pages within a range. */
export function wholePages({ start, end }: AddressRange, pageBytes: number): AddressRange {
  const first = Math.ceil(start / pageBytes) * pageBytes;
  return { start: first, end: Math.max(first, Math.floor(end / pageBytes) * pageBytes) };
}

interface Memory {
  readonly madvise: (start: number, length: number, advice: number) => number;
  readonly pageBytes: number;
  readonly droppable: readonly AddressRange[];
  /** Lies in a mapping that is writable for the sake of its neighbours. */
  readonly program: AddressRange | undefined;
}
let memory: Memory | undefined;

function inspectMemory(): Memory {
  const { madvise, getpagesize } = bindLibc({
    madvise: { args: ["u64", "u64", "i32"], returns: "i32" },
    getpagesize: { args: [], returns: "i32" },
  });
  const pageBytes = getpagesize();
  const droppable = findDroppable(readFileSync("/proc/self/smaps", "utf8"));
  return { madvise, pageBytes, droppable, program: locateProgram(pageBytes) };
}

/** Nothing also when the executable cannot be read: then only the runtime's code is dropped. */
function locateProgram(pageBytes: number): AddressRange | undefined {
  try {
    const program = findEmbeddedProgram("/proc/self/exe");
    return program && wholePages(program, pageBytes);
  } catch {
    return undefined;
  }
}

/**
 * Collects what loading the program left behind, now and not whenever the collector would have come to it. The heap is
 * never compacted: where the first collection falls decides over how many blocks (16 KB) the objects are strewn that
 * stay for good, and it falls elsewhere as soon as the executable holds a module more. Takes 6–8 ms.
 */
export function collectEarly(): void {
  Bun.gc(true);
}

/**
 * Drops the clean, file-backed pages of the program (some 35 MB of resident memory right after start): the runtime's
 * code, and the modules with their bytecode. What is needed again is mapped in from the page cache. Cheap enough to
 * repeat; without FFI nothing happens.
 */
export function dropCleanPages(): void {
  try {
    memory ??= inspectMemory();
    const { madvise, pageBytes, droppable, program } = memory;
    for (const { start, end } of droppable) madvise(start, end - start, MADV_DONTNEED);
    // Looked at each time: what somebody has written to must stay.
    if (program && isPristine(program, pageBytes))
      madvise(program.start, program.end - program.start, MADV_DONTNEED);
  } catch {
    // Only an optimisation.
  }
}
