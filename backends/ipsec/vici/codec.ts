import type { ViciMessage, ViciValue } from "./message.ts";

/** Packet types (strongSwan, src/libcharon/plugins/vici/README.md, "Packet layer"). */
export const PACKET = {
  request: 0,
  response: 1,
  unknownCommand: 2,
  register: 3,
  unregister: 4,
  confirm: 5,
  unknownEvent: 6,
  event: 7,
} as const;

export type PacketType = (typeof PACKET)[keyof typeof PACKET];

/** One packet without the 32-bit length before it. */
export interface Packet {
  readonly type: PacketType;
  /** Of requests, registrations and events. */
  readonly name?: string;
  readonly message: ViciMessage;
}

/** Element types of a message (ibid., "Message format"). */
const SECTION_START = 1;
const SECTION_END = 2;
const KEY_VALUE = 3;
const LIST_START = 4;
const LIST_ITEM = 5;
const LIST_END = 6;

const NAMED: ReadonlySet<number> = new Set([
  PACKET.request,
  PACKET.register,
  PACKET.unregister,
  PACKET.event,
]);
/** A name has an 8-bit length, a value a 16-bit one. */
const LONGEST_NAME = 0xff;
const LONGEST_VALUE = 0xffff;
/** Deeper than any answer of charon, which nests four sections. */
const DEEPEST = 32;
/** Bytes of the length before a packet. */
export const LENGTH_BYTES = 4;
/** VICI_MESSAGE_SIZE_MAX (vici_socket.h): charon neither sends nor takes longer packets. */
export const LONGEST_PACKET = 512 * 1024;

/** Bytes that are no VICI, or a message that cannot be written down. Shows no value of a message. */
export class ViciFormatError extends Error {}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** A packet as it is sent, its length before it. Throws {@link ViciFormatError} for names and values too long. */
export function encodePacket({ type, name, message }: Packet): Uint8Array {
  const parts: Uint8Array[] = [Uint8Array.of(type)];
  if (name !== undefined) parts.push(encodeName(name));
  encodeSection(message, parts);
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  if (length > LONGEST_PACKET) throw new ViciFormatError(`a VICI packet of ${length} bytes`);
  const bytes = new Uint8Array(LENGTH_BYTES + length);
  new DataView(bytes.buffer).setUint32(0, length, false);
  let at = LENGTH_BYTES;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

function encodeSection(section: ViciMessage, parts: Uint8Array[]): void {
  for (const [name, value] of Object.entries(section)) {
    if (typeof value === "string") {
      parts.push(Uint8Array.of(KEY_VALUE), encodeName(name), encodeValue(value));
    } else if (isList(value)) {
      parts.push(Uint8Array.of(LIST_START), encodeName(name));
      for (const item of value) parts.push(Uint8Array.of(LIST_ITEM), encodeValue(item));
      parts.push(Uint8Array.of(LIST_END));
    } else {
      parts.push(Uint8Array.of(SECTION_START), encodeName(name));
      encodeSection(value, parts);
      parts.push(Uint8Array.of(SECTION_END));
    }
  }
}

function isList(value: ViciValue): value is readonly string[] {
  return Array.isArray(value);
}

function encodeName(name: string): Uint8Array {
  const bytes = encoder.encode(name);
  if (bytes.length === 0 || bytes.length > LONGEST_NAME) {
    throw new ViciFormatError(`a VICI name of ${bytes.length} bytes`);
  }
  return Uint8Array.of(bytes.length, ...bytes);
}

function encodeValue(value: string): Uint8Array {
  const bytes = encoder.encode(value);
  if (bytes.length > LONGEST_VALUE) throw new ViciFormatError(`a VICI value of ${bytes.length} bytes`);
  const framed = new Uint8Array(2 + bytes.length);
  new DataView(framed.buffer).setUint16(0, bytes.length, false);
  framed.set(bytes, 2);
  return framed;
}

/** Reads a packet without its length. Throws {@link ViciFormatError}. */
export function decodePacket(bytes: Uint8Array): Packet {
  const reader = new Reader(bytes);
  const type = reader.u8();
  if (type > PACKET.event) throw new ViciFormatError(`VICI packet type ${type}`);
  const name = NAMED.has(type) ? reader.name() : undefined;
  const message = decodeSection(reader, 0);
  return { type: type as PacketType, ...(name === undefined ? {} : { name }), message };
}

/** Elements up to the end of the section, or of the packet at depth 0. */
function decodeSection(reader: Reader, depth: number): ViciMessage {
  if (depth > DEEPEST) throw new ViciFormatError("VICI sections nested too deep");
  const entries = new Map<string, ViciValue>();
  for (;;) {
    if (depth === 0 && reader.isAtEnd) return Object.fromEntries(entries);
    const element = reader.u8();
    if (element === SECTION_END && depth > 0) return Object.fromEntries(entries);
    if (element === KEY_VALUE) entries.set(reader.name(), reader.value());
    else if (element === LIST_START) entries.set(reader.name(), decodeList(reader));
    else if (element === SECTION_START) entries.set(reader.name(), decodeSection(reader, depth + 1));
    else throw new ViciFormatError(`VICI element ${element} where it does not belong`);
  }
}

function decodeList(reader: Reader): readonly string[] {
  const items: string[] = [];
  for (;;) {
    const element = reader.u8();
    if (element === LIST_END) return items;
    if (element !== LIST_ITEM) throw new ViciFormatError(`VICI element ${element} in a list`);
    items.push(reader.value());
  }
}

class Reader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  u8(): number {
    const byte = this.#bytes[this.#at];
    if (byte === undefined) throw new ViciFormatError("a VICI packet that is cut off");
    this.#at += 1;
    return byte;
  }

  name(): string {
    return this.#text(this.u8());
  }

  value(): string {
    return this.#text(this.u8() * 256 + this.u8());
  }

  #text(length: number): string {
    const end = this.#at + length;
    if (end > this.#bytes.length) throw new ViciFormatError("a VICI packet that is cut off");
    const text = decoder.decode(this.#bytes.subarray(this.#at, end));
    this.#at = end;
    return text;
  }
}
