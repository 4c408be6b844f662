import type { Health } from "../../observe/health.ts";
import type { StoreStats } from "../stats.ts";
import type { Layout } from "./layout.ts";
import type { StoredJunk } from "./list.ts";

const CODE = "LEASE_ENTRY_BAD";

/** So many keys are named one by one; what comes beyond is only counted. */
const NAMED = 20;

/** The keys below `subnets/` that are no lease: counted, and told once each. */
export class JunkKeys {
  readonly #known = new Map<string, number>();
  readonly #health: Health;
  readonly #layout: Layout;
  readonly #stats: StoreStats;

  constructor(health: Health, layout: Layout, stats: StoreStats) {
    this.#health = health;
    this.#layout = layout;
    this.#stats = stats;
  }

  /** An entry was read that is no lease. The same write again is ignored. */
  note(entry: StoredJunk): void {
    const known = this.#known.get(entry.key);
    if (known === entry.modRevision) return;
    this.#known.set(entry.key, entry.modRevision);
    this.#stats.badEntries += 1;
    if (known === undefined && this.#known.size > NAMED) return;
    this.#health.raise(
      {
        code: CODE,
        severity: "warning",
        title: "key is not a lease",
        text: `${JSON.stringify(this.#layout.subnets + entry.key)}: ${entry.reason}; it is skipped`,
        fix: `delete it if it is not yours: etcdctl del ${JSON.stringify(this.#layout.subnets + entry.key)}`,
      },
      entry.key,
    );
  }

  /** The key is gone, or a lease now. */
  forget(key: string): void {
    if (this.#known.delete(key)) this.#health.clear(CODE, key);
  }

  /** A complete list was read: what it does not name as junk is none any more. */
  reset(entries: readonly StoredJunk[]): void {
    const present = new Set(entries.map((entry) => entry.key));
    for (const key of this.#known.keys()) if (!present.has(key)) this.forget(key);
    for (const entry of entries) this.note(entry);
  }
}
