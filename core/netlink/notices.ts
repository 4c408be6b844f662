import { describeError, type Fault } from "../observe/fault.ts";
import { CachedDeviceNames } from "./devices.ts";
import { decodeAddress } from "./families/address.ts";
import { decodeFdb } from "./families/fdb.ts";
import { decodeLink, type RawLink } from "./families/link.ts";
import { decodeNeighbour } from "./families/neighbour.ts";
import { decodeNexthop } from "./families/nexthop.ts";
import { decodeRoute } from "./families/route-state.ts";
import { overrunFault } from "./faults.ts";
import type { Notice } from "./kernel.ts";
import type { LinkState } from "./objects.ts";
import { NetlinkSocket } from "./socket.ts";
import {
  AF_BRIDGE,
  NEIGHBOUR_BYTES,
  NLMSG_OVERRUN,
  RTM_DELADDR,
  RTM_DELLINK,
  RTM_DELNEIGH,
  RTM_DELNEXTHOP,
  RTM_DELROUTE,
  RTM_NEWADDR,
  RTM_NEWLINK,
  RTM_NEWNEIGH,
  RTM_NEWNEXTHOP,
  RTM_NEWROUTE,
  RTNLGRP_IPV4_IFADDR,
  RTNLGRP_IPV4_ROUTE,
  RTNLGRP_IPV6_IFADDR,
  RTNLGRP_IPV6_ROUTE,
  RTNLGRP_LINK,
  RTNLGRP_NEIGH,
  RTNLGRP_NEXTHOP,
} from "./wire/constants.ts";
import { MessageCursor } from "./wire/reader.ts";

const GROUPS = [
  RTNLGRP_LINK,
  RTNLGRP_NEIGH,
  RTNLGRP_IPV4_IFADDR,
  RTNLGRP_IPV6_IFADDR,
  RTNLGRP_IPV4_ROUTE,
  RTNLGRP_IPV6_ROUTE,
  RTNLGRP_NEXTHOP,
];

export interface NoticeOptions {
  readonly signal: AbortSignal;
  /** Bytes; what does not fit is lost and makes the iterator throw. */
  readonly receiveBuffer: number;
  /** Name of a device no notice told of yet. */
  readonly lookUp: (index: number) => string | undefined;
  /** Completes a decoded device. */
  readonly finish: (link: RawLink) => LinkState;
  /** Called once, when the subscription is over. */
  readonly onEnd?: () => void;
}

/**
 * Subscribes at once and hands out what the kernel tells (`ip monitor link neigh address route nexthop`) until the
 * signal aborts. Throws Fault `NETLINK_OVERRUN` from `next` when notices were lost, for whatever reason: the caller
 * then dumps and subscribes anew. The socket lives until the signal aborts or the iteration ends.
 */
export function openNotices(options: NoticeOptions): AsyncIterable<readonly Notice[]> {
  const { signal, receiveBuffer } = options;
  if (signal.aborted) return emptyIterable;
  const socket = new NetlinkSocket({ receiveBuffer, groups: GROUPS, nonBlocking: true });
  // A net.Socket or a ReadStream over the same descriptor delivers nothing at all.
  const reader = Bun.file(socket.fd).stream().getReader();
  let released = false;
  const release = () => {
    if (released) return;
    released = true;
    signal.removeEventListener("abort", release);
    options.onEnd?.();
    // The event loop must have let go of the descriptor before its number can be given to another file.
    const close = () => socket.close();
    reader.cancel().then(close, close);
  };
  signal.addEventListener("abort", release, { once: true });
  const read = () => reader.read();
  return { [Symbol.asyncIterator]: () => iterate(read, options, release) };
}

const emptyIterable: AsyncIterable<readonly Notice[]> = {
  async *[Symbol.asyncIterator]() {},
};

async function* iterate(
  read: () => Promise<{ done: boolean; value?: Uint8Array | undefined }>,
  { signal, lookUp, finish }: NoticeOptions,
  release: () => void,
): AsyncGenerator<readonly Notice[]> {
  const names = new CachedDeviceNames(lookUp);
  try {
    while (!signal.aborted) {
      const { done, value } = await readChunk(read);
      if (signal.aborted) return;
      if (done || value === undefined) throw overrunFault("the socket was closed");
      const notices = decodeNotices(value, names, finish);
      if (notices.length > 0) yield notices;
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    release();
  }
}

async function readChunk<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    throw overrunFault(describeError(error), error);
  }
}

/**
 * The notices in a chunk of the stream, which holds one or more whole datagrams. Messages that concern nobody here
 * (other tables and families) are left out. Throws Fault `NETLINK_OVERRUN` for bytes that make no sense: part of
 * the stream is lost then, too.
 */
export function decodeNotices(
  chunk: Uint8Array,
  names: CachedDeviceNames,
  finish: (link: RawLink) => LinkState,
): Notice[] {
  const notices: Notice[] = [];
  const cursor = new MessageCursor(chunk);
  try {
    while (cursor.next()) {
      if (cursor.type === NLMSG_OVERRUN) throw overrunFault("NLMSG_OVERRUN");
      const notice = decodeNotice(cursor, names, finish);
      if (notice) notices.push(notice);
    }
  } catch (error) {
    throw overrunFault(describeError(error), error as Fault);
  }
  return notices;
}

function decodeNotice(
  message: MessageCursor,
  names: CachedDeviceNames,
  finish: (link: RawLink) => LinkState,
): Notice | undefined {
  switch (message.type) {
    case RTM_NEWLINK:
    case RTM_DELLINK: {
      const raw = decodeLink(message);
      if (!raw) return undefined;
      names.note(raw.state.index, raw.state.name);
      return { kind: "link", action: message.type === RTM_NEWLINK ? "put" : "delete", link: finish(raw) };
    }
    case RTM_NEWADDR:
    case RTM_DELADDR: {
      const address = decodeAddress(message, names);
      return address && { kind: "address", action: message.type === RTM_NEWADDR ? "put" : "delete", address };
    }
    case RTM_NEWROUTE:
    case RTM_DELROUTE: {
      const route = decodeRoute(message, names);
      return route && { kind: "route", action: message.type === RTM_NEWROUTE ? "put" : "delete", route };
    }
    case RTM_NEWNEXTHOP:
    case RTM_DELNEXTHOP: {
      const nexthop = decodeNexthop(message, names);
      return { kind: "nexthop", action: message.type === RTM_NEWNEXTHOP ? "put" : "delete", nexthop };
    }
    case RTM_NEWNEIGH:
    case RTM_DELNEIGH: {
      message.require(NEIGHBOUR_BYTES);
      const action = message.type === RTM_NEWNEIGH ? "put" : "delete";
      if (message.view.getUint8(message.start) === AF_BRIDGE) {
        const fdb = decodeFdb(message, names);
        return fdb && { kind: "fdb", action, fdb };
      }
      const neighbour = decodeNeighbour(message, names);
      return neighbour && { kind: "neighbour", action, neighbour };
    }
    default:
      return undefined;
  }
}
