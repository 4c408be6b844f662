import { ping } from "../ping.ts";
import type { Pod } from "../pod.ts";
import { renderTable } from "./table.ts";

/** Pings that run at the same time; more would measure this machine's scheduler. */
const AT_ONCE = 8;
const COUNT = 3;

/** Round-trip time in ms from one pod to another, undefined when any request went unanswered. */
export interface Reach {
  readonly from: Pod;
  readonly to: Pod;
  readonly address: string;
  readonly milliseconds: number | undefined;
}

/** Pings every pod from every other, over every family both have. Stops early, with less, when aborted. */
export async function measureReach(
  pods: readonly Pod[],
  onProgress: (done: number, all: number) => void,
  signal: AbortSignal,
): Promise<readonly Reach[]> {
  const pairs = pods.flatMap((from) =>
    pods.filter((to) => to !== from).flatMap((to) => to.addresses.map((address) => ({ from, to, address }))),
  );
  const results: Reach[] = [];
  const queue = pairs.values();
  const worker = async () => {
    for (const pair of queue) {
      if (signal.aborted) return;
      const { received, rtts } = await ping(pair.from, pair.address, { count: COUNT, interval: 0.02 });
      results.push({ ...pair, milliseconds: received === COUNT ? median(rtts) : undefined });
      onProgress(results.length, pairs.length);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return results;
}

function median(values: readonly number[]): number | undefined {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
}

/** One table per family, rows from, columns to, in ms; wide ones are cut into parts that fit `columns`. */
export function renderMatrix(pods: readonly Pod[], reach: readonly Reach[], columns: number): string {
  const families = (["IPv4", "IPv6"] as const).filter((family) =>
    reach.some((entry) => familyOf(entry) === family),
  );
  const times = new Map(
    reach.map((entry) => [cellKey(entry.from, entry.to, familyOf(entry)), entry.milliseconds]),
  );
  const cellWidth = 8;
  const perPart = Math.max(2, Math.floor((columns - 10) / cellWidth));
  return families
    .flatMap((family) =>
      parts(pods, perPart).map((part) => {
        const cell = (from: Pod, to: Pod) => {
          if (from === to) return "–";
          const key = cellKey(from, to, family);
          if (!times.has(key)) return "";
          const time = times.get(key);
          return time === undefined ? "✘" : time.toFixed(2);
        };
        const rows = pods.map((from) => [from.host.name, ...part.map((to) => cell(from, to))]);
        return `${family}\n${renderTable([["from\\to", ...part.map((to) => to.host.name)], ...rows])}`;
      }),
    )
    .join("\n");
}

function parts<T>(items: readonly T[], size: number): readonly (readonly T[])[] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, n) =>
    items.slice(n * size, (n + 1) * size),
  );
}

function familyOf(entry: Reach): "IPv4" | "IPv6" {
  return entry.address.includes(":") ? "IPv6" : "IPv4";
}

function cellKey(from: Pod, to: Pod, family: string): string {
  return `${from.host.name} ${to.host.name} ${family}`;
}
