import { Fault } from "../observe/fault.ts";
import { Pace } from "../retry/pace.ts";
import type { Refusal } from "./faults.ts";
import { NetlinkSocket } from "./socket.ts";
import { MessageBuilder } from "./wire/builder.ts";
import {
  HEADER_BYTES,
  NLM_F_ACK_TLVS,
  NLM_F_CAPPED,
  NLM_F_DUMP_INTR,
  NLMSG_DONE,
  NLMSG_ERROR,
  NLMSG_NOOP,
  NLMSGERR_ATTR_MSG,
} from "./wire/constants.ts";
import { AttributeCursor, MessageCursor } from "./wire/reader.ts";

/** The kernel fills a dump in pieces of up to 32 KiB (af_netlink.c); single answers are smaller. */
const RECEIVE_BYTES = 64 * 1024;
/** A dump is repeated when the table changed under it; a table that never holds still for one is a storm. */
const DUMP_ATTEMPTS = 8;
/** Objects of a dump between two yields. */
const DUMP_STRIDE = 2000;

/** Writes a request into the builder under the given sequence number. */
export type Encode = (builder: MessageBuilder, sequence: number) => void;

/** What came back: a refusal, or the messages (copies, so that they stay valid). */
export interface Reply {
  readonly refusal?: Refusal;
  readonly messages: readonly MessageCursor[];
}

/** Requests and answers over one socket. */
export class Exchange {
  readonly builder: MessageBuilder;
  readonly socket: NetlinkSocket;
  readonly #received = new Uint8Array(RECEIVE_BYTES);
  readonly #cursor = new MessageCursor(this.#received);
  #sequence = 1;

  /**
   * `batchBytes`: bytes after which the builder counts as full. `receiveBuffer`: socket buffer, bytes. `protocol`:
   * NETLINK_*, default NETLINK_ROUTE.
   */
  constructor({ batchBytes, ...socket }: { batchBytes: number; receiveBuffer: number; protocol?: number }) {
    this.builder = new MessageBuilder(batchBytes);
    this.socket = new NetlinkSocket(socket);
  }

  /** Reserves `count` sequence numbers and returns the first; the others follow, modulo 2^32. */
  reserve(count: number): number {
    const first = this.#sequence;
    this.#sequence = (first + count) >>> 0;
    return first;
  }

  /** One request and its answer, without letting go of the event loop (some 20 µs). */
  request(encode: Encode): Reply {
    const sequence = this.reserve(1);
    this.builder.clear();
    encode(this.builder, sequence);
    const messages: MessageCursor[] = [];
    let refusal: Refusal | undefined;
    this.flush(
      sequence,
      (_, error) => {
        refusal = error;
      },
      (message) => {
        messages.push(copyOf(message));
      },
    );
    return refusal === undefined ? { messages } : { refusal, messages };
  }

  /**
   * Sends what the builder holds and reads until the message with sequence number `last` is acknowledged.
   * Every refusal is reported with its sequence number, also those of earlier requests that nobody waited for.
   */
  flush(
    last: number,
    onRefusal: (sequence: number, refusal: Refusal) => void,
    onMessage: (message: MessageCursor) => void = () => {},
  ): void {
    this.builder.requestAck();
    this.socket.send(this.builder.bytes, this.builder.length);
    for (let acknowledged = false; !acknowledged; ) {
      const cursor = this.#receive();
      while (cursor.next()) {
        if (cursor.type !== NLMSG_ERROR) {
          if (cursor.type !== NLMSG_DONE && cursor.sequence === last) onMessage(cursor);
          continue;
        }
        const refusal = decodeError(cursor);
        if (refusal) onRefusal(cursor.sequence, refusal);
        if (cursor.sequence === last) acknowledged = true;
      }
    }
  }

  /**
   * All objects of a dump, decoded; `decode` returns undefined for those to leave out. Repeats a dump that the
   * kernel marks as interrupted. Throws Fault `NETLINK_DUMP_INTERRUPTED` when it never gets a clean one.
   */
  async dump<T>(
    encode: Encode,
    decode: (message: MessageCursor) => T | undefined,
  ): Promise<{ refusal?: Refusal; items: T[] }> {
    for (let attempt = 0; attempt < DUMP_ATTEMPTS; attempt++) {
      const items: T[] = [];
      const end = await this.#dumpOnce(encode, decode, items);
      if (end === "interrupted") continue;
      return end === "complete" ? { items } : { refusal: end, items };
    }
    throw new Fault(
      "NETLINK_DUMP_INTERRUPTED",
      `the kernel's table changed during each of ${DUMP_ATTEMPTS} dumps`,
      {
        hint: "Something on this host changes it without pause: look with `ip monitor`.",
      },
    );
  }

  close(): void {
    this.socket.close();
  }

  async #dumpOnce<T>(
    encode: Encode,
    decode: (message: MessageCursor) => T | undefined,
    items: T[],
  ): Promise<"complete" | "interrupted" | Refusal> {
    const sequence = this.reserve(1);
    this.builder.clear();
    encode(this.builder, sequence);
    this.socket.send(this.builder.bytes, this.builder.length);
    const pace = new Pace(DUMP_STRIDE);
    let interrupted = false;
    let failure: unknown;
    for (;;) {
      const before = items.length;
      try {
        const cursor = this.#receive();
        while (cursor.next()) {
          if (cursor.sequence !== sequence || cursor.type === NLMSG_NOOP) continue;
          if ((cursor.flags & NLM_F_DUMP_INTR) !== 0) interrupted = true;
          if (cursor.type === NLMSG_DONE || cursor.type === NLMSG_ERROR) {
            if (failure !== undefined) throw failure;
            if (interrupted) return "interrupted";
            return decodeError(cursor) ?? "complete";
          }
          const item = decode(cursor);
          if (item !== undefined) items.push(item);
        }
      } catch (error) {
        // The rest of the dump has to be read before the socket can be used again.
        if (failure !== undefined || isFinal(error)) throw failure ?? error;
        failure = error;
      }
      await pace.advance(items.length - before);
    }
  }

  #receive(): MessageCursor {
    const length = this.socket.receive(this.#received);
    this.#cursor.reset(length);
    return this.#cursor;
  }
}

/** Whether nothing more can come after this error. */
function isFinal(error: unknown): boolean {
  return !(error instanceof Fault) || error.code !== "NETLINK_MALFORMED";
}

function copyOf(message: MessageCursor): MessageCursor {
  const copy = new MessageCursor(message.bytes.slice(message.start - HEADER_BYTES, message.end));
  copy.next();
  return copy;
}

/**
 * The error in an NLMSG_ERROR (or NLMSG_DONE, which ends a dump with one): undefined for 0, which is an
 * acknowledgement. The text is that of the extended ack, empty when there is none.
 */
export function decodeError(message: MessageCursor): Refusal | undefined {
  if (message.end - message.start < 4) return undefined;
  const { view, start, end, flags, type } = message;
  const code = view.getInt32(start, true);
  if (code === 0) return undefined;
  let at = start + 4;
  if (type === NLMSG_ERROR) {
    // The refused message: its header only when capped, else as a whole.
    const quoted = (flags & NLM_F_CAPPED) === 0 && at + 4 <= end ? view.getUint32(at, true) : HEADER_BYTES;
    if (quoted > end - at) return { errno: Math.abs(code), text: "" };
    at += (Math.max(quoted, HEADER_BYTES) + 3) & ~3;
  }
  const text = (flags & NLM_F_ACK_TLVS) !== 0 && at < end ? extendedAck(message, at) : "";
  return { errno: Math.abs(code), text };
}

function extendedAck(message: MessageCursor, from: number): string {
  const attributes = new AttributeCursor(message.bytes, message.view, from, message.end);
  while (attributes.next()) if (attributes.type === NLMSGERR_ATTR_MSG) return attributes.text();
  return "";
}
