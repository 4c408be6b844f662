import type { BatchObject } from "../netlink/kernel.ts";
import { equalObjects, identityOf } from "./identity.ts";

/** Two owners that want different objects of one identity: the first one keeps it. */
export interface WantedConflict {
  readonly identity: string;
  readonly holder: string;
  readonly loser: string;
}

/** What has to be written and removed in the kernel after a change of the wanted state. */
export interface WantedChange {
  readonly put: readonly BatchObject[];
  readonly gone: readonly BatchObject[];
}

interface Entry {
  readonly object: BatchObject;
  readonly owner: string;
}

/**
 * The wanted state of the kernel: objects by identity, each owned by a peer (its key) or by the node itself.
 * Replacing an owner's objects returns just the difference.
 */
export class WantedState {
  readonly #byIdentity = new Map<string, Entry>();
  readonly #identitiesOf = new Map<string, readonly string[]>();
  readonly #losers = new Map<string, WantedConflict>();

  /** Replaces everything `owner` wants. */
  set(owner: string, objects: readonly BatchObject[]): WantedChange {
    const put: BatchObject[] = [];
    const identities: string[] = [];
    const before = this.#identitiesOf.get(owner) ?? [];
    this.#forgetConflictsOf(owner);
    for (const object of objects) {
      const identity = identityOf(object);
      const known = this.#byIdentity.get(identity);
      if (known && known.owner !== owner) {
        if (!equalObjects(known.object, object)) {
          this.#losers.set(`${identity} ${owner}`, { identity, holder: known.owner, loser: owner });
        }
        continue;
      }
      identities.push(identity);
      this.#byIdentity.set(identity, { object, owner });
      if (!known || !equalObjects(known.object, object)) put.push(object);
    }
    const kept = new Set(identities);
    const gone = before.filter((identity) => !kept.has(identity)).map((identity) => this.#remove(identity));
    if (identities.length > 0) this.#identitiesOf.set(owner, identities);
    else this.#identitiesOf.delete(owner);
    return { put, gone: gone.filter((object) => object !== undefined) };
  }

  /** Forgets an owner; its objects are to be removed. */
  delete(owner: string): WantedChange {
    return this.set(owner, []);
  }

  /** Owners whose object lost against another owner's. */
  conflicts(): readonly WantedConflict[] {
    return [...this.#losers.values()];
  }

  /** The wanted object of an identity. */
  get(identity: string): BatchObject | undefined {
    return this.#byIdentity.get(identity)?.object;
  }

  /** Owner of an identity, for naming a peer in a failure. */
  ownerOf(identity: string): string | undefined {
    return this.#byIdentity.get(identity)?.owner;
  }

  /** All owners. */
  owners(): IterableIterator<string> {
    return this.#identitiesOf.keys();
  }

  /** All wanted objects with their identities. */
  *entries(): IterableIterator<readonly [string, BatchObject]> {
    for (const [identity, entry] of this.#byIdentity) yield [identity, entry.object];
  }

  get size(): number {
    return this.#byIdentity.size;
  }

  #remove(identity: string): BatchObject | undefined {
    const entry = this.#byIdentity.get(identity);
    this.#byIdentity.delete(identity);
    return entry?.object;
  }

  #forgetConflictsOf(owner: string): void {
    if (this.#losers.size === 0) return;
    for (const [key, conflict] of this.#losers) if (conflict.loser === owner) this.#losers.delete(key);
  }
}
