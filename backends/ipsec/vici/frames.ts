import { LENGTH_BYTES, LONGEST_PACKET, ViciFormatError } from "./codec.ts";

/** Cuts a stream of bytes into packets: each has its length before it, as a 32-bit number in network order. */
export class Frames {
  #pending = new Uint8Array(0);

  /** The packets that are complete with these bytes. Throws {@link ViciFormatError} for a length that cannot be. */
  push(bytes: Uint8Array): readonly Uint8Array[] {
    const all = new Uint8Array(this.#pending.length + bytes.length);
    all.set(this.#pending);
    all.set(bytes, this.#pending.length);
    const view = new DataView(all.buffer);
    const packets: Uint8Array[] = [];
    let at = 0;
    while (all.length - at >= LENGTH_BYTES) {
      const length = view.getUint32(at, false);
      if (length === 0 || length > LONGEST_PACKET)
        throw new ViciFormatError(`a VICI packet of ${length} bytes`);
      const end = at + LENGTH_BYTES + length;
      if (end > all.length) break;
      packets.push(all.slice(at + LENGTH_BYTES, end));
      at = end;
    }
    this.#pending = all.slice(at);
    return packets;
  }
}
