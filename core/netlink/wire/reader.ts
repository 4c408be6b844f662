import { formatIPv4 } from "../../net/ipv4.ts";
import { formatIPv6 } from "../../net/ipv6.ts";
import { malformedFault } from "../faults.ts";
import { ATTRIBUTE_BYTES, HEADER_BYTES, NLA_TYPE_MASK } from "./constants.ts";

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));
const decoder = new TextDecoder();

/** Walks the messages of received bytes. Every step moves on by a header at least, so it always ends. */
export class MessageCursor {
  readonly bytes: Uint8Array;
  readonly view: DataView;
  /** nlmsg_type of the message `next` stopped at. */
  type = 0;
  flags = 0;
  sequence = 0;
  /** Payload of the message: `bytes[start, end)`. */
  start = 0;
  end = 0;
  #next = 0;
  #length: number;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#length = bytes.byteLength;
  }

  /** Starts over: `length` bytes were received into the buffer. */
  reset(length: number): void {
    this.#next = 0;
    this.#length = Math.min(length, this.bytes.byteLength);
  }

  /** Goes to the next message, false at the end. Throws Fault `NETLINK_MALFORMED` when the lengths do not add up. */
  next(): boolean {
    const at = this.#next;
    if (at >= this.#length) return false;
    if (at + HEADER_BYTES > this.#length)
      throw malformedFault(`${this.#length - at} bytes where a header belongs`);
    const length = this.view.getUint32(at, true);
    if (length < HEADER_BYTES || at + length > this.#length) {
      throw malformedFault(`length ${length} with ${this.#length - at} bytes left`);
    }
    this.type = this.view.getUint16(at + 4, true);
    this.flags = this.view.getUint16(at + 6, true);
    this.sequence = this.view.getUint32(at + 8, true);
    this.start = at + HEADER_BYTES;
    this.end = at + length;
    this.#next = at + ((length + 3) & ~3);
    return true;
  }

  /** Throws Fault `NETLINK_MALFORMED` unless the payload has at least `bytes` bytes. */
  require(bytes: number): void {
    if (this.end - this.start < bytes) {
      throw malformedFault(
        `type ${this.type} with ${this.end - this.start} bytes of payload instead of ${bytes}`,
      );
    }
  }

  /** The attributes behind a fixed header of `bytes` bytes. */
  attributes(bytes: number): AttributeCursor {
    this.require(bytes);
    return new AttributeCursor(this.bytes, this.view, this.start + bytes, this.end);
  }
}

/** Walks attributes. The value readers throw Fault `NETLINK_MALFORMED` when the attribute is too short for them. */
export class AttributeCursor {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly #end: number;
  #next: number;
  /** Type without the flag bits. */
  type = 0;
  /** Value: `bytes[at, at + length)`. */
  at = 0;
  length = 0;

  constructor(bytes: Uint8Array, view: DataView, from: number, to: number) {
    this.#bytes = bytes;
    this.#view = view;
    this.#next = from;
    this.#end = to;
  }

  /** Goes to the next attribute, false at the end (fewer bytes than a header are padding). */
  next(): boolean {
    const at = this.#next;
    const left = this.#end - at;
    if (left < ATTRIBUTE_BYTES) return false;
    const length = this.#view.getUint16(at, true);
    if (length < ATTRIBUTE_BYTES || length > left)
      throw malformedFault(`attribute length ${length} of ${left}`);
    this.type = this.#view.getUint16(at + 2, true) & NLA_TYPE_MASK;
    this.at = at + ATTRIBUTE_BYTES;
    this.length = length - ATTRIBUTE_BYTES;
    this.#next = at + ((length + 3) & ~3);
    return true;
  }

  u8(): number {
    this.#require(1);
    return this.#view.getUint8(this.at);
  }

  u16(): number {
    this.#require(2);
    return this.#view.getUint16(this.at, true);
  }

  u32(): number {
    this.#require(4);
    return this.#view.getUint32(this.at, true);
  }

  /** A 64-bit number, as a double: exact up to 2^53. */
  u64(): number {
    this.#require(8);
    return Number(this.#view.getBigUint64(this.at, true));
  }

  /** A copy of exactly `length` bytes. */
  take(length: number): Uint8Array {
    this.#require(length);
    return this.#bytes.slice(this.at, this.at + length);
  }

  /** A 32-bit number in network order, as nf_tables writes them. */
  u32BigEndian(): number {
    this.#require(4);
    return this.#view.getUint32(this.at, false);
  }

  /** A 16-bit number in network order. */
  port(): number {
    this.#require(2);
    return this.#view.getUint16(this.at, false);
  }

  /** Text up to its zero byte. */
  text(): string {
    let end = this.at;
    const limit = this.at + this.length;
    while (end < limit && this.#bytes[end] !== 0) end++;
    return decoder.decode(this.#bytes.subarray(this.at, end));
  }

  /** `0a:1b:2c:3d:4e:5f`, undefined for a link-layer address that is no MAC (tunnels carry an IP there). */
  mac(): string | undefined {
    if (this.length !== 6) return undefined;
    const hex = (index: number) => HEX[this.#bytes[this.at + index] ?? 0] ?? "";
    return `${hex(0)}:${hex(1)}:${hex(2)}:${hex(3)}:${hex(4)}:${hex(5)}`;
  }

  /** Address text; the family follows from the length (4 or 16 bytes) from `skip` on. */
  address(skip = 0): string {
    const at = this.at + skip;
    const length = this.length - skip;
    if (length === 4) return formatIPv4(this.#view.getUint32(at, false));
    if (length !== 16) throw malformedFault(`attribute ${this.type} holds an address of ${length} bytes`);
    return formatIPv6((this.#view.getBigUint64(at, false) << 64n) | this.#view.getBigUint64(at + 8, false));
  }

  /** The attributes inside this one, from `skip` bytes into its value. */
  nested(skip = 0): AttributeCursor {
    this.#require(skip);
    return new AttributeCursor(this.#bytes, this.#view, this.at + skip, this.at + this.length);
  }

  /** The attributes in `bytes[from, to)`, a part of this one's value. */
  slice(from: number, to: number): AttributeCursor {
    return new AttributeCursor(this.#bytes, this.#view, from, to);
  }

  #require(bytes: number): void {
    if (this.length < bytes)
      throw malformedFault(`attribute ${this.type} has ${this.length} bytes of ${bytes}`);
  }
}
