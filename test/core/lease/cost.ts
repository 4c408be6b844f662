const values = Array.from(
  { length: 20_000 },
  (_, i) =>
    `{"PublicIP":"172.16.${i >> 8}.${i & 255}","PublicIPv6":null,"BackendType":"vxlan",` +
    `"BackendData":{"VNI":1,"VtepMAC":"02:00:00:00:00:11"}}`,
);

/** About 10 ms on an idle machine of 2020. */
function yardstick(): void {
  for (const value of values) JSON.parse(value);
}

/**
 * What `work` costs, in multiples of parsing the JSON of 20,000 leases in the same minute: a busy machine slows both.
 * The least of several runs counts. With FIGURES in the environment the times are printed, too.
 */
export function cost(name: string, work: () => void, runs = 5): number {
  let least = Number.POSITIVE_INFINITY;
  let unit = Number.POSITIVE_INFINITY;
  for (let run = 0; run < runs; run++) {
    unit = Math.min(unit, time(yardstick));
    least = Math.min(least, time(work));
  }
  const ratio = least / unit;
  if (process.env.FIGURES) console.log(`${name}: ${least.toFixed(1)} ms, ${ratio.toFixed(2)} yardsticks`);
  return ratio;
}

function time(work: () => void): number {
  const start = performance.now();
  work();
  return performance.now() - start;
}
