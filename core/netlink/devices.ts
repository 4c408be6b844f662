/** Device names by index, for decoding. */
export interface DeviceNames {
  /** Undefined for an index that no device has (any more). */
  nameOf(index: number): string | undefined;
}

/** Above this the cache starts over: pods come and go, and each brings a new index. */
const MOST_NAMES = 4096;

/** Asks the kernel once per index. Good for one dump, or for as long as link notices keep it right. */
export class CachedDeviceNames implements DeviceNames {
  readonly #names = new Map<number, string | undefined>();
  readonly #lookUp: (index: number) => string | undefined;

  constructor(lookUp: (index: number) => string | undefined) {
    this.#lookUp = lookUp;
  }

  nameOf(index: number): string | undefined {
    if (index <= 0) return undefined;
    const known = this.#names.get(index);
    // An index without a device is remembered too: thousands of routes may still name it.
    if (known !== undefined || this.#names.has(index)) return known;
    const name = this.#lookUp(index);
    this.note(index, name);
    return name;
  }

  /** A notice told the name. A removed device keeps its last name: notices about its objects may still follow. */
  note(index: number, name: string | undefined): void {
    if (this.#names.size >= MOST_NAMES) this.#names.clear();
    this.#names.set(index, name);
  }
}
