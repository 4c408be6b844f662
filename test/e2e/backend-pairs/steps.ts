import type { Type } from "./traces.ts";

/** A change from one backend to the next. */
export type Step = readonly [from: Type, to: Type];

/** Every ordered pair of different backends. */
export function orderedPairs(types: readonly Type[]): readonly Step[] {
  return types.flatMap((from) => types.filter((to) => to !== from).map((to): Step => [from, to]));
}

/**
 * A walk that goes each of the ways once, one after the other (Hierholzer's algorithm). There must be one from `start`.
 */
export function walkAll(start: Type, ways: readonly Step[]): readonly Step[] {
  const left = [...ways];
  const stack: Type[] = [start];
  const visited: Type[] = [];
  for (let here = stack.at(-1); here !== undefined; here = stack.at(-1)) {
    const at = left.findIndex(([from]) => from === here);
    if (at < 0) visited.unshift(stack.pop() as Type);
    else {
      const [[, to]] = left.splice(at, 1) as [Step];
      stack.push(to);
    }
  }
  const steps = visited.slice(1).map((to, n): Step => [visited[n] as Type, to]);
  if (steps.length !== ways.length) throw new Error(`there is no such walk from ${start}`);
  return steps;
}

/**
 * How the daemons end before each step, in turn by a request and by the kernel's hand: a killed daemon leaves the more.
 * What an operator's commands made only the operator's commands take away, when the daemon stops.
 */
export function withSignals(steps: readonly Step[]): readonly (readonly [...Step, NodeJS.Signals])[] {
  return steps.map(([from, to], n) => [
    from,
    to,
    n % 2 === 0 || from === "extension" ? "SIGTERM" : "SIGKILL",
  ]);
}
