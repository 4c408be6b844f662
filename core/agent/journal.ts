/** What an entry of the journal is about. */
export type JournalKind = "peer" | "repair" | "lease" | "config" | "host" | "finding" | "daemon";

/** Something that happened and may explain how things stand. */
export interface JournalEntry {
  /** Wall clock, ms since 1970. */
  readonly at: number;
  readonly kind: JournalKind;
  /** Subnet keys of the nodes it concerns; none for the node itself. */
  readonly keys: readonly string[];
  readonly text: string;
}

/** Entries kept; the oldest go first. */
const MOST_ENTRIES = 2_000;
/** Subnet keys kept in all entries together: a burst of a large cluster names thousands at once. */
const MOST_KEYS = 50_000;

/** The last events of the daemon, in memory only. */
export class Journal {
  #entries: JournalEntry[] = [];
  #keys = 0;
  /** Entries at the beginning of the list that have gone already. */
  #gone = 0;
  readonly #now: () => number;

  /** @param now the wall clock in ms. */
  constructor(now: () => number = Date.now) {
    this.#now = now;
  }

  /** Takes note of an event. */
  note(kind: JournalKind, text: string, keys: readonly string[] = []): void {
    this.#entries.push({ at: this.#now(), kind, keys, text });
    this.#keys += keys.length;
    while (this.#size > MOST_ENTRIES || (this.#keys > MOST_KEYS && this.#size > 1)) this.#drop();
  }

  /** All entries, oldest first; with a key only those that concern its node. */
  list(key?: string): readonly JournalEntry[] {
    const entries = this.#entries.slice(this.#gone);
    return key === undefined ? entries : entries.filter((entry) => entry.keys.includes(key));
  }

  get #size(): number {
    return this.#entries.length - this.#gone;
  }

  #drop(): void {
    this.#keys -= this.#entries[this.#gone]?.keys.length ?? 0;
    this.#gone += 1;
    // Moved in one go now and then: a shift per entry would move all of them each time.
    if (this.#gone < MOST_ENTRIES / 4) return;
    this.#entries = this.#entries.slice(this.#gone);
    this.#gone = 0;
  }
}
