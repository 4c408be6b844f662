import { asPointer, type Pointer, pointerTo } from "../system/libc.ts";

/** Bytes of a WebAssembly page. */
const PAGE = 65_536;
const TWO_32 = 2 ** 32;
/** An address space of 48 bits has few boundaries of 4 GiB to run into. */
const TRIES = 8;

/**
 * One piece of memory that the kernel, WebAssembly and JavaScript work on alike. Places in it are offsets; it never
 * grows or moves, and lies within one 4 GiB block, so that the upper half of every address in it is the same.
 */
export class Arena {
  readonly memory: WebAssembly.Memory;
  readonly bytes: Uint8Array;
  readonly view: DataView;
  /** The same memory as signed 32-bit words in the machine's order, by offset / 4: unsigned ones would be floats. */
  readonly words: Int32Array;
  /** Upper 32 bits of every address. */
  readonly high: number;
  readonly #base: number;
  readonly #low: number;
  #used = 64;

  /** @param size bytes, rounded up to whole pages. */
  constructor(size: number) {
    const pages = Math.ceil(size / PAGE);
    const { memory, base } = allocate(pages);
    this.memory = memory;
    this.bytes = new Uint8Array(memory.buffer);
    this.view = new DataView(memory.buffer);
    this.words = new Int32Array(memory.buffer);
    this.high = Math.floor(base / TWO_32);
    this.#base = base;
    this.#low = (base % TWO_32) | 0;
  }

  /** Sets a piece aside; `align` is a power of two. Throws when the arena is too small, which is a mistake of ours. */
  reserve(size: number, align = 64): number {
    const offset = (this.#used + align - 1) & -align;
    if (offset + size > this.bytes.length) throw new Error(`the arena has no room for ${size} bytes`);
    this.#used = offset + size;
    return offset;
  }

  /** The address of an offset, as an argument of a system call. */
  address(offset: number): Pointer {
    return asPointer(this.#base + offset);
  }

  /** Lower 32 bits of the address of an offset, as a signed word. */
  low(offset: number): number {
    return (this.#low + offset) | 0;
  }

  /** Writes the address of `target` as a 64-bit pointer at `offset`. */
  putAddress(offset: number, target: number): void {
    this.words[offset >> 2] = this.low(target);
    this.words[(offset >> 2) + 1] = this.high;
  }
}

/** Memory of whole pages that does not lie across a boundary of 4 GiB. */
function allocate(pages: number): { readonly memory: WebAssembly.Memory; readonly base: number } {
  for (let tries = 0; tries < TRIES; tries++) {
    const memory = new WebAssembly.Memory({ initial: pages, maximum: pages });
    const base = pointerTo(new Uint8Array(memory.buffer));
    if ((base % TWO_32) + pages * PAGE <= TWO_32) return { memory, base };
  }
  throw new Error("no memory that lies within one block of 4 GiB");
}
