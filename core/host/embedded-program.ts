import { closeSync, openSync, readSync } from "node:fs";

/** A range of addresses, `[start, end)`. */
export interface AddressRange {
  readonly start: number;
  readonly end: number;
}

/** The section of the executable into which `bun build --compile` puts modules, their bytecode and source maps. */
const SECTION = ".bun";
/**
 * proc(5), /proc/PID/pagemap: eight bytes a page; bits 62, 63: it is there, or swapped out; bit 61: of a file. Taken as
 * two words of 32 bits each: BigInts would leave garbage in proportion to the size of the executable.
 */
const ENTRY_WORDS = 2;
const EXISTS = 3 << 30;
const OF_FILE = 1 << 29;

/**
 * Where the embedded program of the executable at `path` lies in memory: addresses as the linker gave them. Nothing
 * if it has none, or if it is loaded at another place every time (elf(5): ET_DYN). Like `readelf -SW PATH`.
 * @throws when the file cannot be read.
 */
export function findEmbeddedProgram(path: string): AddressRange | undefined {
  const file = openSync(path, "r");
  try {
    const read = (length: number, position: number): DataView => {
      const bytes = new Uint8Array(length);
      if (readSync(file, bytes, 0, length, position) < length) throw new RangeError(`${path} ends early`);
      return new DataView(bytes.buffer);
    };
    // Elf64_Ehdr: e_ident, e_type at 16, e_shoff at 40, e_shentsize, e_shnum and e_shstrndx at 58.
    const header = read(64, 0);
    const is64 = header.getUint32(0) === 0x7f454c46 && header.getUint8(4) === 2;
    if (!is64 || header.getUint16(16, true) !== 2) return undefined;
    const [entry, count, namesIndex] = [58, 60, 62].map((at) => header.getUint16(at, true));
    if (entry === undefined || count === undefined || namesIndex === undefined) return undefined;
    const sections = read(entry * count, Number(header.getBigUint64(40, true)));
    // Elf64_Shdr: sh_name, sh_addr at 16, sh_offset at 24, sh_size at 32.
    const field = (section: number, at: number) => Number(sections.getBigUint64(section * entry + at, true));
    const names = Buffer.from(read(field(namesIndex, 32), field(namesIndex, 24)).buffer);
    for (let section = 0; section < count; section++) {
      const at = sections.getUint32(section * entry, true);
      if (names.toString("latin1", at, names.indexOf(0, at)) !== SECTION) continue;
      return { start: field(section, 16), end: field(section, 16) + field(section, 32) };
    }
    return undefined;
  } finally {
    closeSync(file);
  }
}

/**
 * Whether no page of the range (`[start, end)`, whole pages of `pageBytes`) was ever written to by this process: then
 * all of it can be read from the file again, although the mapping is writable.
 * @throws when the kernel does not tell.
 */
export function isPristine({ start, end }: AddressRange, pageBytes: number): boolean {
  const words = new Uint32Array(((end - start) / pageBytes) * ENTRY_WORDS);
  const bytes = new Uint8Array(words.buffer);
  const bytesPerPage = ENTRY_WORDS * words.BYTES_PER_ELEMENT;
  const file = openSync("/proc/self/pagemap", "r");
  try {
    const length = readSync(file, bytes, 0, bytes.length, (start / pageBytes) * bytesPerPage);
    if (length < bytes.length) throw new RangeError("/proc/self/pagemap ends early");
  } finally {
    closeSync(file);
  }
  // Little-endian, as every architecture Bun runs on: what tells is in the second word of each page.
  return words.every(
    (word, index) => index % ENTRY_WORDS === 0 || !(word & EXISTS) || Boolean(word & OF_FILE),
  );
}
