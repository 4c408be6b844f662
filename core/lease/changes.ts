import type { Lease } from "./lease.ts";
import type { PeerUpdate } from "./store.ts";

type Snapshot = Extract<PeerUpdate, { type: "snapshot" }>;
type Changes = Extract<PeerUpdate, { type: "changes" }>;

/**
 * What a slow consumer has yet to see, in the room of one entry per key: a burst on one key becomes its last state,
 * and changes after a snapshot are worked into it. The writer never waits.
 */
export class PendingUpdate {
  readonly #puts = new Map<string, Lease>();
  readonly #deletes = new Set<string>();
  readonly #unreadable = new Set<string>();
  #complete = false;
  #revision: number | undefined;

  /** Whether there is nothing to take. */
  get empty(): boolean {
    return this.#revision === undefined;
  }

  /** Adds what the store said; later calls win. */
  add(update: PeerUpdate): void {
    if (update.type === "snapshot") this.#addSnapshot(update);
    else this.#addChanges(update);
    this.#revision = update.revision;
  }

  /** All that was added since the last call as one update, undefined when there was nothing. */
  take(): PeerUpdate | undefined {
    if (this.#revision === undefined) return undefined;
    const leases = [...this.#puts.values()];
    const revision = this.#revision;
    const update: PeerUpdate = this.#complete
      ? { type: "snapshot", leases, revision, unreadable: [...this.#unreadable] }
      : { type: "changes", puts: leases, deletes: [...this.#deletes], revision };
    this.#clear();
    this.#complete = false;
    this.#revision = undefined;
    return update;
  }

  #addSnapshot(snapshot: Snapshot): void {
    const kept = (snapshot.unreadable ?? []).flatMap((key) => this.#puts.get(key) ?? []);
    const unreadable = (snapshot.unreadable ?? []).filter((key) => !this.#isKnownGone(key));
    this.#clear();
    this.#complete = true;
    for (const lease of [...snapshot.leases, ...kept]) this.#puts.set(lease.key, lease);
    for (const key of unreadable) if (!this.#puts.has(key)) this.#unreadable.add(key);
  }

  /** Whether what waits already proves that the lease known under a key is gone. */
  #isKnownGone(key: string): boolean {
    return this.#deletes.has(key) || (this.#complete && !this.#puts.has(key) && !this.#unreadable.has(key));
  }

  #addChanges(changes: Changes): void {
    for (const key of changes.deletes) {
      this.#puts.delete(key);
      this.#unreadable.delete(key);
      if (!this.#complete) this.#deletes.add(key);
    }
    for (const lease of changes.puts) {
      this.#deletes.delete(lease.key);
      this.#unreadable.delete(lease.key);
      this.#puts.set(lease.key, lease);
    }
  }

  #clear(): void {
    this.#puts.clear();
    this.#deletes.clear();
    this.#unreadable.clear();
  }
}
