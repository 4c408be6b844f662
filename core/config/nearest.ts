/** Longer words are no typos of ours; the limit bounds the work on hostile input. */
const LONGEST_WORD = 64;

/**
 * The candidate that `word` was probably meant to be, undefined when none is near: at most one typing mistake
 * (insertion, deletion, replacement, swap of neighbours) per three characters, in any case; else the shortest
 * candidate that contains the word. The first of equally near candidates wins.
 */
export function nearestName(word: string, candidates: readonly string[]): string | undefined {
  if (word === "" || word.length > LONGEST_WORD) return undefined;
  const wanted = word.toLowerCase();
  const limit = Math.max(1, Math.floor(word.length / 3));
  let best: string | undefined;
  let fewest = limit + 1;
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - word.length) >= fewest) continue;
    const mistakes = countMistakes(wanted, candidate.toLowerCase());
    // One mistake turns any single letter into any other: that is no likeness.
    if (mistakes >= fewest || mistakes >= candidate.length) continue;
    fewest = mistakes;
    best = candidate;
  }
  return best ?? shortestContaining(wanted, candidates);
}

function shortestContaining(word: string, candidates: readonly string[]): string | undefined {
  if (word.length < 4) return undefined;
  return candidates
    .filter((candidate) => candidate.toLowerCase().includes(word))
    .reduce<string | undefined>(
      (best, candidate) => (best === undefined || candidate.length < best.length ? candidate : best),
      undefined,
    );
}

/** Damerau-Levenshtein distance in its restricted form (no part is edited twice). */
export function countMistakes(a: string, b: string): number {
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1];
      let cost = Math.min(
        at(previous, column) + 1,
        at(current, column - 1) + 1,
        at(previous, column - 1) + (same ? 0 : 1),
      );
      const swapped = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      if (swapped) cost = Math.min(cost, at(beforePrevious, column - 2) + 1);
      current.push(cost);
    }
    beforePrevious = previous;
    previous = current;
  }
  return at(previous, b.length);
}

function at(row: readonly number[], column: number): number {
  return row[column] ?? 0;
}
