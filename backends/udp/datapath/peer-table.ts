import { pointerTo } from "../system/libc.ts";
import { SOCKET_ADDRESS_ROOM } from "../system/socket-address.ts";
import { type PeersMessage, ROUTE_FIELDS } from "./messages.ts";
import { WordTable } from "./table.ts";

const IPV6 = 256;
const TWO_32 = 2 ** 32;

/** A prefix length that occurs, as masks of the four words. */
interface Length {
  readonly length: number;
  readonly masks: readonly [number, number, number, number];
}

const NO_LENGTH: Length = { length: 0, masks: [0, 0, 0, 0] };

/** Who has which subnet, and who may send: both directions ask it once per packet, so it makes no garbage. */
export class PeerTable {
  /** Socket addresses, {@link SOCKET_ADDRESS_ROOM} bytes each. */
  readonly #endpoints: Uint8Array;
  readonly #address: number;
  readonly #routes: WordTable;
  readonly #members: WordTable;
  /** Longest first. */
  readonly #lengths4: readonly Length[];
  readonly #lengths6: readonly Length[];

  constructor({ routes, endpoints }: Omit<PeersMessage, "kind">) {
    const count = routes.length / ROUTE_FIELDS;
    this.#endpoints = endpoints.length > 0 ? endpoints : new Uint8Array(SOCKET_ADDRESS_ROOM);
    this.#address = pointerTo(this.#endpoints);
    this.#routes = new WordTable(count);
    this.#members = new WordTable(endpoints.length / SOCKET_ADDRESS_ROOM);
    const lengths = new Set<number>();
    for (let at = 0; at < routes.length; at += ROUTE_FIELDS) {
      const [length = 0, a = 0, b = 0, c = 0, d = 0, endpoint = 0] = routes.subarray(at, at + ROUTE_FIELDS);
      this.#routes.add(a, b, c, d, length, endpoint);
      lengths.add(length);
    }
    const ordered = [...lengths].sort((a, b) => b - a);
    this.#lengths4 = ordered.filter((length) => length < IPV6).map(lengthOf);
    this.#lengths6 = ordered.filter((length) => length >= IPV6).map(lengthOf);
    this.#addMembers(endpoints);
  }

  /** Index of the endpoint that has an IPv4 address (as a signed word), -1 for none. */
  find4(word: number): number {
    const lengths = this.#lengths4;
    for (let n = 0; n < lengths.length; n++) {
      const { length, masks } = lengths[n] ?? NO_LENGTH;
      const found = this.#routes.get(word & masks[0], 0, 0, 0, length);
      if (found >= 0) return found;
    }
    return -1;
  }

  /** The same for IPv6. */
  find6(a: number, b: number, c: number, d: number): number {
    const lengths = this.#lengths6;
    for (let n = 0; n < lengths.length; n++) {
      const { length, masks } = lengths[n] ?? NO_LENGTH;
      const found = this.#routes.get(a & masks[0], b & masks[1], c & masks[2], d & masks[3], length);
      if (found >= 0) return found;
    }
    return -1;
  }

  /** Whether a datagram's source address and port are those of a member. Words are signed; IPv4 uses the first. */
  isMember(a: number, b: number, c: number, d: number, port: number): boolean {
    return this.#members.get(a, b, c, d, port) >= 0;
  }

  /** The socket address of an endpoint, with what room there is behind it. */
  endpoint(index: number): Uint8Array {
    const at = index * SOCKET_ADDRESS_ROOM;
    return this.#endpoints.subarray(at, at + SOCKET_ADDRESS_ROOM);
  }

  /** Lower half of the machine address of an endpoint. */
  low(endpoint: number): number {
    return (this.#address + endpoint * SOCKET_ADDRESS_ROOM) >>> 0;
  }

  /** Upper half of it. */
  high(endpoint: number): number {
    return Math.floor((this.#address + endpoint * SOCKET_ADDRESS_ROOM) / TWO_32);
  }

  #addMembers(endpoints: Uint8Array): void {
    const view = new DataView(endpoints.buffer, endpoints.byteOffset, endpoints.byteLength);
    for (let at = 0, n = 0; at < endpoints.length; at += SOCKET_ADDRESS_ROOM, n++) {
      const port = view.getUint16(at + 2);
      const word = (index: number) => view.getInt32(at + 8 + 4 * index);
      if (view.getUint16(at, true) === 2) this.#members.add(view.getInt32(at + 4), 0, 0, 0, port, n);
      else this.#members.add(word(0), word(1), word(2), word(3), port, n);
    }
  }
}

function lengthOf(length: number): Length {
  const bits = length % IPV6;
  const mask = (word: number): number => {
    const set = Math.min(32, Math.max(0, bits - 32 * word));
    return set === 0 ? 0 : -1 << (32 - set);
  };
  return { length, masks: [mask(0), mask(1), mask(2), mask(3)] };
}
