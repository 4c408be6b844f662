import { type Prefix, prefix4, prefix6 } from "../net/prefix.ts";

/** Anything that occupies prefixes. */
export interface Occupant {
  readonly prefixes: readonly Prefix[];
}

type Base = number | bigint;

const NOBODY: ReadonlySet<never> = new Set();

/** All prefixes of one length: those of exactly this length, and the longer ones by the block they lie in. */
interface Level<T extends Occupant> {
  readonly exact: Buckets<T>;
  readonly inside: Buckets<T>;
}

/**
 * Finds who overlaps whom. Two prefixes overlap exactly when one lies in the other, so a lookup costs one map access
 * per prefix length in use (usually one). A length seen for the first time costs one pass over all occupants.
 */
export class OverlapIndex<T extends Occupant> {
  readonly #levels = { 4: new Map<number, Level<T>>(), 6: new Map<number, Level<T>>() };
  readonly #occupants = new Set<T>();

  /** Whether an occupant is in. */
  has(occupant: T): boolean {
    return this.#occupants.has(occupant);
  }

  /** Adds an occupant; the same object again is ignored. */
  add(occupant: T): void {
    if (this.#occupants.has(occupant)) return;
    for (const prefix of occupant.prefixes) this.#ensureLevel(prefix);
    this.#occupants.add(occupant);
    for (const prefix of occupant.prefixes) {
      this.#eachShorter(prefix, ({ inside }, base) => inside.add(base, occupant));
      this.#levels[prefix.family].get(prefix.length)?.exact.add(prefix.base, occupant);
    }
  }

  /** Removes an occupant; unknown ones are ignored. */
  remove(occupant: T): void {
    if (!this.#occupants.delete(occupant)) return;
    for (const prefix of occupant.prefixes) {
      this.#eachShorter(prefix, ({ inside }, base) => inside.remove(base, occupant));
      const levels = this.#levels[prefix.family];
      const level = levels.get(prefix.length);
      level?.exact.remove(prefix.base, occupant);
      if (level?.exact.size === 0) levels.delete(prefix.length);
    }
  }

  /** The other occupants that overlap a known one in at least one prefix. */
  overlapping(occupant: T): ReadonlySet<T> {
    let found: Set<T> | undefined;
    for (const prefix of occupant.prefixes) {
      const level = this.#levels[prefix.family].get(prefix.length);
      if (!level) continue;
      found = level.exact.collect(prefix.base, occupant, found);
      found = level.inside.collect(prefix.base, occupant, found);
      this.#eachShorter(prefix, ({ exact }, base) => {
        found = exact.collect(base, occupant, found);
      });
    }
    return found ?? NOBODY;
  }

  #ensureLevel({ family, length }: Prefix): void {
    const levels = this.#levels[family];
    if (levels.has(length)) return;
    const level = { exact: new Buckets<T>(), inside: new Buckets<T>() };
    for (const occupant of this.#occupants) {
      for (const prefix of occupant.prefixes) {
        if (prefix.family === family && prefix.length > length)
          level.inside.add(mask(prefix, length), occupant);
      }
    }
    levels.set(length, level);
  }

  #eachShorter(prefix: Prefix, visit: (level: Level<T>, base: Base) => void): void {
    // Usually all subnets of a network have one length; the one given is always among them.
    if (this.#levels[prefix.family].size === 1) return;
    for (const [length, level] of this.#levels[prefix.family]) {
      if (length < prefix.length) visit(level, mask(prefix, length));
    }
  }
}

function mask(prefix: Prefix, length: number): Base {
  return prefix.family === 4 ? prefix4(prefix.base, length).base : prefix6(prefix.base, length).base;
}

/** Several values per key; a lone value, the usual case by far, is held without a set around it. */
class Buckets<T extends Occupant> {
  readonly #buckets = new Map<Base, T | Set<T>>();

  get size(): number {
    return this.#buckets.size;
  }

  add(base: Base, value: T): void {
    const bucket = this.#buckets.get(base);
    if (bucket instanceof Set) bucket.add(value);
    else this.#buckets.set(base, bucket === undefined ? value : new Set([bucket, value]));
  }

  remove(base: Base, value: T): void {
    const bucket = this.#buckets.get(base);
    if (!(bucket instanceof Set)) {
      if (bucket === value) this.#buckets.delete(base);
      return;
    }
    bucket.delete(value);
    if (bucket.size === 0) this.#buckets.delete(base);
  }

  /** Adds the values of a key to `found`, save for one; a set is made only when there is something to put in. */
  collect(base: Base, except: T, found: Set<T> | undefined): Set<T> | undefined {
    const bucket = this.#buckets.get(base);
    if (bucket === undefined || bucket === except) return found;
    const into = found ?? new Set<T>();
    if (bucket instanceof Set) for (const value of bucket) into.add(value);
    else into.add(bucket);
    into.delete(except);
    return into;
  }
}
