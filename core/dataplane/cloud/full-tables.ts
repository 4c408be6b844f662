import type { CloudChange, CloudError, CloudReading } from "../../../plugins/sdk/cloud.ts";
import { Backoff } from "../../retry/backoff.ts";
import { isCloudError } from "./finding.ts";

/** A limit may be raised without a trace in the table: it is tried again after this at first, and at most, ms. */
const AGAIN_MS = { first: 600_000, max: 3_600_000 } as const;

interface FullTable {
  readonly contents: string;
  readonly error: CloudError;
  readonly backoff: Backoff;
  /** When it is tried again, on the monotonic clock. */
  readonly due: number;
}

/**
 * Tables that had no room, and what they held then. A limit is not overcome by asking again and again: a route is
 * created there when the table has changed, else in minutes at first, and once an hour.
 */
export class FullTables {
  readonly #known = new Map<string, FullTable>();
  readonly #now: () => number;

  /** @param now the monotonic clock in ms. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** The refusal of the last try, when it would most likely be the same now. */
  refusalOf(change: CloudChange, reading: CloudReading): CloudError | undefined {
    if (change.action !== "create") return undefined;
    const known = this.#known.get(change.table);
    if (known === undefined || this.#now() >= known.due) return undefined;
    return known.contents === contentsOf(reading, change.table) ? known.error : undefined;
  }

  /** Takes note of what a change came to: what it failed with, undefined when it was made. */
  note(change: CloudChange, reading: CloudReading, error: unknown): void {
    if (change.action !== "create") return;
    if (!isCloudError(error) || error.kind !== "full") {
      if (error === undefined) this.#known.delete(change.table);
      return;
    }
    const contents = contentsOf(reading, change.table);
    const known = this.#known.get(change.table);
    const backoff = known?.contents === contents ? known.backoff : new Backoff(AGAIN_MS);
    this.#known.set(change.table, { contents, error, backoff, due: this.#now() + backoff.next() });
  }
}

function contentsOf({ tables }: CloudReading, id: string): string {
  const routes = tables.find((table) => table.id === id)?.routes ?? [];
  return routes
    .map(({ dst, target, state }) => `${dst} ${target} ${state}`)
    .sort()
    .join("\n");
}
