import { parseIPv4At } from "../../net/ipv4.ts";
import { parseIPv6 } from "../../net/ipv6.ts";
import { badObjectFault } from "../faults.ts";
import { ATTRIBUTE_BYTES, HEADER_BYTES, NLA_F_NESTED, NLM_F_ACK, NLM_F_REQUEST } from "./constants.ts";

/** Room behind the fill mark for one more message; the largest (a vxlan device) takes under 300 bytes. */
const SLACK_BYTES = 4096;
const COLON = 58;
const encoder = new TextEncoder();

/**
 * Writes netlink messages into one long-lived buffer: `begin`, header fields, attributes, `end`. Numbers are
 * little-endian as on every machine Bun runs on; addresses and ports are big-endian as on the wire of the network.
 * Allocates nothing per message.
 */
export class MessageBuilder {
  readonly bytes: Uint8Array;
  readonly #view: DataView;
  readonly #capacity: number;
  #length = 0;
  /** Where the message in the making begins. */
  #start = 0;
  /** Where the message finished last begins. */
  #last = 0;
  #count = 0;

  /** `capacity`: bytes after which the batch counts as full. */
  constructor(capacity: number) {
    this.#capacity = capacity;
    this.bytes = new Uint8Array(capacity + SLACK_BYTES);
    this.#view = new DataView(this.bytes.buffer);
  }

  /** Bytes of the finished messages. */
  get length(): number {
    return this.#length;
  }

  /** Number of finished messages. */
  get count(): number {
    return this.#count;
  }

  get full(): boolean {
    return this.#length >= this.#capacity;
  }

  /** Throws all messages away. */
  clear(): void {
    this.#length = 0;
    this.#count = 0;
  }

  /** Starts a message; NLM_F_REQUEST is always set. */
  begin(type: number, flags: number, sequence: number): void {
    const view = this.#view;
    const at = this.#length;
    this.#start = at;
    view.setUint16(at + 4, type, true);
    view.setUint16(at + 6, flags | NLM_F_REQUEST, true);
    view.setUint32(at + 8, sequence, true);
    view.setUint32(at + 12, 0, true);
    this.#length = at + HEADER_BYTES;
  }

  /** Finishes the message begun last. */
  end(): void {
    this.#view.setUint32(this.#start, this.#length - this.#start, true);
    this.#last = this.#start;
    this.#count++;
  }

  /** Drops the message begun last. */
  cancel(): void {
    this.#length = this.#start;
  }

  /**
   * Asks the kernel to acknowledge the message finished last. Errors of all messages are reported anyway, so one
   * acknowledgement marks the end of the batch.
   */
  requestAck(): void {
    const at = this.#last + 6;
    this.#view.setUint16(at, this.#view.getUint16(at, true) | NLM_F_ACK, true);
  }

  u8(value: number): void {
    this.bytes[this.#length++] = value;
  }

  u16(value: number): void {
    this.#view.setUint16(this.#length, value, true);
    this.#length += 2;
  }

  u32(value: number): void {
    this.#view.setUint32(this.#length, value, true);
    this.#length += 4;
  }

  attributeU8(type: number, value: number): void {
    this.#header(type, 1);
    this.#view.setUint32(this.#length, value & 0xff, true);
    this.#length += 4;
  }

  attributeU16(type: number, value: number): void {
    this.#header(type, 2);
    this.#view.setUint32(this.#length, value & 0xffff, true);
    this.#length += 4;
  }

  attributeU32(type: number, value: number): void {
    this.#header(type, 4);
    this.#view.setUint32(this.#length, value, true);
    this.#length += 4;
  }

  /** A 16-bit number in network order: a port. */
  attributePort(type: number, value: number): void {
    this.#header(type, 2);
    this.#view.setUint16(this.#length, value, false);
    this.#view.setUint16(this.#length + 2, 0, true);
    this.#length += 4;
  }

  /** Bytes as they are. */
  attributeBytes(type: number, bytes: Uint8Array): void {
    this.#header(type, bytes.byteLength);
    const end = this.#length + bytes.byteLength;
    this.bytes.set(bytes, this.#length);
    this.#length = (end + 3) & ~3;
    this.bytes.fill(0, end, this.#length);
  }

  /** An attribute whose presence is its value. */
  attributeFlag(type: number): void {
    this.#header(type, 0);
  }

  /** Zero-terminated text, e.g. a device name. */
  attributeText(type: number, text: string): void {
    const at = this.#length + ATTRIBUTE_BYTES;
    const { written } = encoder.encodeInto(text, this.bytes.subarray(at));
    this.#header(type, written + 1);
    this.#length = at + ((written + 4) & ~3);
    this.bytes.fill(0, at + written, this.#length);
  }

  /** A MAC of text such as `0a:1b:2c:3d:4e:5f`; throws Fault `NETLINK_BAD_OBJECT` when it is none. */
  attributeMac(type: number, text: string): void {
    this.#header(type, 6);
    const at = this.#length;
    if (text.length !== 17) throw badObjectFault("a MAC address", text);
    for (let index = 0; index < 6; index++) {
      const high = hexDigit(text.charCodeAt(3 * index));
      const low = hexDigit(text.charCodeAt(3 * index + 1));
      if (high < 0 || low < 0 || (index < 5 && text.charCodeAt(3 * index + 2) !== COLON)) {
        throw badObjectFault("a MAC address", text);
      }
      this.bytes[at + index] = high * 16 + low;
    }
    this.#view.setUint16(at + 6, 0, true);
    this.#length = at + 8;
  }

  /**
   * The address in `text[0, to)`, of the family its form tells; throws Fault `NETLINK_BAD_OBJECT` when it is none
   * or not of the family `wanted`.
   */
  attributeAddress(type: number, text: string, wanted?: 4 | 6, to = text.length): void {
    const family = familyOf(text);
    if (wanted !== undefined && family !== wanted) throw badObjectFault(`an IPv${wanted} address`, text);
    if (family === 4) {
      const address = parseIPv4At(text, 0, to);
      if (address === undefined) throw badObjectFault("an IPv4 address", text);
      this.#header(type, 4);
      this.#view.setUint32(this.#length, address, false);
      this.#length += 4;
      return;
    }
    const address = parseIPv6(to === text.length ? text : text.slice(0, to));
    if (address === undefined) throw badObjectFault("an IPv6 address", text);
    this.#header(type, 16);
    this.#view.setBigUint64(this.#length, address >> 64n, false);
    this.#view.setBigUint64(this.#length + 8, address & 0xffffffffffffffffn, false);
    this.#length += 16;
  }

  /** Opens an attribute that holds attributes; give the result to {@link closeNest}. */
  openNest(type: number): number {
    const at = this.#length;
    this.#header(type | NLA_F_NESTED, 0);
    return at;
  }

  closeNest(at: number): void {
    this.#view.setUint16(at, this.#length - at, true);
  }

  #header(type: number, payload: number): void {
    this.#view.setUint32(this.#length, (payload + ATTRIBUTE_BYTES) | (type << 16), true);
    this.#length += ATTRIBUTE_BYTES;
  }
}

/** Family of address or CIDR text by its form alone. */
export function familyOf(text: string): 4 | 6 {
  return text.includes(":") ? 6 : 4;
}

/** Position of the slash of CIDR text; throws Fault `NETLINK_BAD_OBJECT` when there is none. */
export function slashOf(cidr: string): number {
  const slash = cidr.indexOf("/");
  if (slash < 0) throw badObjectFault("an address with a prefix length", cidr);
  return slash;
}

/** Prefix length behind the slash at `slash`; throws Fault `NETLINK_BAD_OBJECT` when it is none of the family. */
export function prefixLengthOf(cidr: string, slash: number, family: 4 | 6): number {
  let length = 0;
  const end = cidr.length;
  for (let at = slash + 1; at < end; at++) {
    const digit = cidr.charCodeAt(at) - 48;
    if (!(digit >= 0 && digit <= 9)) throw badObjectFault("a prefix", cidr);
    length = length * 10 + digit;
  }
  if (end === slash + 1 || end > slash + 4 || length > (family === 4 ? 32 : 128)) {
    throw badObjectFault("a prefix", cidr);
  }
  return length;
}

function hexDigit(code: number): number {
  if (code >= 48 && code <= 57) return code - 48;
  const lower = code | 32;
  return lower >= 97 && lower <= 102 ? lower - 87 : -1;
}
