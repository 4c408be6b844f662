import type { CloudChange, CloudError, CloudReading } from "../../../plugins/sdk/cloud.ts";
import { isCloudError } from "./finding.ts";

/**
 * Tables that had no room, and what they held then. A limit is not overcome by asking again: a route is created there
 * only after the table has changed.
 */
export class FullTables {
  readonly #known = new Map<string, { readonly contents: string; readonly error: CloudError }>();

  /** The refusal of the last try, when it would be the same now. */
  refusalOf(change: CloudChange, reading: CloudReading): CloudError | undefined {
    if (change.action !== "create") return undefined;
    const known = this.#known.get(change.table);
    return known?.contents === contentsOf(reading, change.table) ? known?.error : undefined;
  }

  /** Takes note of what a change failed with. */
  note(change: CloudChange, reading: CloudReading, error: unknown): void {
    if (change.action !== "create" || !isCloudError(error) || error.kind !== "full") return;
    this.#known.set(change.table, { contents: contentsOf(reading, change.table), error });
  }
}

function contentsOf({ tables }: CloudReading, id: string): string {
  const routes = tables.find((table) => table.id === id)?.routes ?? [];
  return routes
    .map(({ dst, target, state }) => `${dst} ${target} ${state}`)
    .sort()
    .join("\n");
}
