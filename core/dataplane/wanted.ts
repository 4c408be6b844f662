import type { BatchObject } from "../netlink/kernel.ts";
import { equalObjects, identityOf } from "./identity.ts";

/** Owners that want different objects of one identity: the first one has it, the others wait. */
export interface WantedConflict {
  readonly identity: string;
  readonly holder: string;
  readonly losers: readonly string[];
}

/** What has to be written and removed in the kernel after a change of the wanted state. */
export interface WantedChange {
  readonly put: readonly BatchObject[];
  readonly gone: readonly BatchObject[];
}

/** One owner's wish for an identity; the head of the chain holds it, the rest wait in the order they came. */
interface Claim {
  readonly owner: string;
  object: BatchObject;
  next: Claim | undefined;
}

/**
 * The wanted state of the kernel: objects by identity, each owned by a peer (its key) or by the node itself.
 * Replacing an owner's objects returns just the difference. Of several owners of one identity the first one counts;
 * when it lets go the next one takes over.
 */
export class WantedState {
  readonly #claims = new Map<string, Claim>();
  readonly #identitiesOf = new Map<string, readonly string[]>();
  readonly #shared = new Set<string>();

  /** Replaces everything `owner` wants. */
  set(owner: string, objects: readonly BatchObject[]): WantedChange {
    return this.setAll([[owner, objects]]);
  }

  /** As {@link set} for somebody who compares everything with the kernel next: the difference is not worked out. */
  stage(owner: string, objects: readonly BatchObject[]): void {
    this.#replace(owner, objects, undefined);
  }

  /** Replaces everything several owners want; an identity may move between them without being removed. */
  setAll(changes: Iterable<readonly [owner: string, objects: readonly BatchObject[]]>): WantedChange {
    const before = new Map<string, BatchObject | undefined>();
    for (const [owner, objects] of changes) this.#replace(owner, objects, before);
    const put: BatchObject[] = [];
    const gone: BatchObject[] = [];
    for (const [identity, had] of before) {
      const has = this.get(identity);
      if (has === undefined) {
        if (had) gone.push(had);
      } else if (!had || !equalObjects(had, has)) put.push(has);
    }
    return { put, gone };
  }

  /** Forgets an owner; what nobody else wants is to be removed. */
  delete(owner: string): WantedChange {
    return this.set(owner, []);
  }

  /** Identities for which somebody waits with a different object. */
  conflicts(): readonly WantedConflict[] {
    return [...this.#shared].flatMap((identity) => {
      const [holder, ...others] = this.#chain(identity);
      if (!holder) return [];
      const losers = others.filter((claim) => !equalObjects(claim.object, holder.object));
      if (losers.length === 0) return [];
      return [{ identity, holder: holder.owner, losers: losers.map((claim) => claim.owner) }];
    });
  }

  /** The wanted object of an identity. */
  get(identity: string): BatchObject | undefined {
    return this.#claims.get(identity)?.object;
  }

  /** Owner of an identity, for naming a peer in a failure. */
  ownerOf(identity: string): string | undefined {
    return this.#claims.get(identity)?.owner;
  }

  /** Everybody who wants an identity, the holder first. */
  ownersOf(identity: string): readonly string[] {
    return this.#chain(identity).map((claim) => claim.owner);
  }

  /** What an owner wants, also where another one holds it. */
  objectsOf(owner: string): readonly BatchObject[] {
    return (this.#identitiesOf.get(owner) ?? []).flatMap(
      (identity) => this.#chain(identity).find((claim) => claim.owner === owner)?.object ?? [],
    );
  }

  /** All owners. */
  owners(): IterableIterator<string> {
    return this.#identitiesOf.keys();
  }

  /** All wanted objects by identity, each as the claim of its holder: the map's own iterator, as there are many. */
  entries(): IterableIterator<readonly [string, { readonly object: BatchObject }]> {
    return this.#claims.entries();
  }

  get size(): number {
    return this.#claims.size;
  }

  /** Notes in `before`, if there is one, what an identity was before it was touched for the first time. */
  #replace(
    owner: string,
    objects: readonly BatchObject[],
    before: Map<string, BatchObject | undefined> | undefined,
  ): void {
    const touch = (identity: string) => {
      if (before && !before.has(identity)) before.set(identity, this.get(identity));
    };
    const known = this.#identitiesOf.get(owner);
    const left = known && new Set(known);
    const identities: string[] = [];
    for (const object of objects) {
      const identity = identityOf(object);
      touch(identity);
      // Of two objects of one identity the second replaces the first.
      if (this.#claim(identity, owner, object) || left?.delete(identity)) identities.push(identity);
    }
    for (const identity of left ?? []) {
      touch(identity);
      this.#withdraw(identity, owner);
    }
    if (identities.length > 0) this.#identitiesOf.set(owner, identities);
    else this.#identitiesOf.delete(owner);
  }

  /** Whether this is the owner's first claim to the identity. */
  #claim(identity: string, owner: string, object: BatchObject): boolean {
    const head = this.#claims.get(identity);
    if (!head) {
      this.#claims.set(identity, { owner, object, next: undefined });
      return true;
    }
    let claim = head;
    while (claim.owner !== owner && claim.next) claim = claim.next;
    if (claim.owner === owner) {
      claim.object = object;
      return false;
    }
    claim.next = { owner, object, next: undefined };
    this.#shared.add(identity);
    return true;
  }

  #withdraw(identity: string, owner: string): void {
    const left = this.#chain(identity).filter((claim) => claim.owner !== owner);
    left.forEach((claim, position) => {
      claim.next = left[position + 1];
    });
    const [head] = left;
    if (head) this.#claims.set(identity, head);
    else this.#claims.delete(identity);
    if (left.length < 2) this.#shared.delete(identity);
  }

  #chain(identity: string): readonly Claim[] {
    const chain: Claim[] = [];
    for (let claim = this.#claims.get(identity); claim; claim = claim.next) chain.push(claim);
    return chain;
  }
}
