import type { Findings } from "../observe/own-findings.ts";

/** Peers named in the finding before it says how many more there are. */
const NAMED = 3;

/** Why peers are left out, wholly or in part: one finding for all of them, so that a thousand make one line. */
export class PeerProblems {
  readonly #health: Findings;
  readonly #byPeer = new Map<string, readonly string[]>();
  #scheduled = false;

  constructor(health: Findings) {
    this.#health = health;
  }

  /** Replaces what is known about a peer; an empty list means it is fine. */
  note(key: string, problems: readonly string[]): void {
    if (problems.length === 0 && !this.#byPeer.has(key)) return;
    if (problems.length === 0) this.#byPeer.delete(key);
    else this.#byPeer.set(key, problems);
    this.#schedule();
  }

  /** Peers with problems. */
  get keys(): readonly string[] {
    return [...this.#byPeer.keys()];
  }

  /** What is known of a peer, empty when it is fine. */
  of(key: string): readonly string[] {
    return this.#byPeer.get(key) ?? [];
  }

  /** The peer is gone. */
  forget(key: string): void {
    if (this.#byPeer.delete(key)) this.#schedule();
  }

  /** Said once per burst, when all peers of it are planned. */
  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#say();
    });
  }

  #say(): void {
    if (this.#byPeer.size === 0) {
      this.#health.clear("PEER_UNUSABLE");
      return;
    }
    const named = [...this.#byPeer]
      .slice(0, NAMED)
      .map(([key, problems]) => `${key} ${problems.join(" and ")}`);
    const more = this.#byPeer.size > NAMED ? ` and ${this.#byPeer.size - NAMED} more` : "";
    this.#health.raise({
      code: "PEER_UNUSABLE",
      severity: "warning",
      title: "peers that cannot be reached as configured",
      text: `${this.#byPeer.size}: ${named.join("; ")}${more}`,
      fix: "All nodes of one network need the same backend; look at the named lease in the store.",
    });
  }
}
