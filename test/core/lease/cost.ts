/**
 * What `work` costs in ms: the least of several runs, and of wall and processor time in each, since the machine may be
 * busy with something else.
 */
export function cost(work: () => void, runs = 5): number {
  let least = Number.POSITIVE_INFINITY;
  for (let run = 0; run < runs; run++) {
    const cpu = process.cpuUsage();
    const start = performance.now();
    work();
    const wall = performance.now() - start;
    const { user, system } = process.cpuUsage(cpu);
    least = Math.min(least, wall, (user + system) / 1000);
  }
  return least;
}
