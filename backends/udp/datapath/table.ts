/** Smallest number of slots. */
const LEAST_SLOTS = 16;
const FIELDS = 6;

/**
 * A hash table from five 32-bit words to a number from 0 up; open addressing in one array, half empty. Looking up makes
 * no garbage.
 */
export class WordTable {
  readonly #slots: Int32Array;
  readonly #mask: number;

  /** @param capacity most entries. */
  constructor(capacity: number) {
    let slots = LEAST_SLOTS;
    while (slots < capacity * 2) slots *= 2;
    this.#slots = new Int32Array(slots * FIELDS).fill(0);
    this.#mask = slots - 1;
  }

  /** The value of a key, -1 when there is none. */
  get(a: number, b: number, c: number, d: number, e: number): number {
    const slots = this.#slots;
    for (let at = hash(a, b, c, d, e) & this.#mask; ; at = (at + 1) & this.#mask) {
      const slot = at * FIELDS;
      // Stored values are one higher: 0 marks an empty slot.
      const value = slots[slot + 5] ?? 0;
      if (value === 0) return -1;
      if (
        slots[slot] === a &&
        slots[slot + 1] === b &&
        slots[slot + 2] === c &&
        slots[slot + 3] === d &&
        slots[slot + 4] === e
      ) {
        return value - 1;
      }
    }
  }

  /** Adds a key; the first value of a key stays. Words are signed. */
  add(a: number, b: number, c: number, d: number, e: number, value: number): void {
    if (this.get(a, b, c, d, e) >= 0) return;
    const slots = this.#slots;
    let at = hash(a, b, c, d, e) & this.#mask;
    while (slots[at * FIELDS + 5] !== 0) at = (at + 1) & this.#mask;
    slots.set([a, b, c, d, e, value + 1], at * FIELDS);
  }
}

/** Multiply and mix (the finaliser of MurmurHash3). */
function hash(a: number, b: number, c: number, d: number, e: number): number {
  let h =
    Math.imul(a, 0x9e3779b1) ^ Math.imul(b, 0x85ebca77) ^ Math.imul(c, 0xc2b2ae3d) ^ Math.imul(d, 0x27d4eb2f);
  h ^= Math.imul(e, 0x165667b1);
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return h ^ (h >>> 16);
}
