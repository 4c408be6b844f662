/**
 * What the data path counts, in the order of its shared memory. The worker alone writes; numbers only grow while it
 * lives.
 */
export const COUNTERS = [
  "sentPackets",
  "sentBytes",
  "sends",
  "receivedPackets",
  "receivedBytes",
  "writes",
  /** Datagrams of senders that are no members. */
  "strangers",
  /** Datagrams of members that are no IP packet, or not of the family of their socket. */
  "malformed",
  /** Packets for an address that is no peer's. */
  "noRoute",
  /** Multicast, which is not carried. */
  "multicast",
  "expired",
  /** Packets that did not fit the path and may not be fragmented. */
  "tooBig",
  /** Datagrams that were fragmented on the way out. */
  "fragmented",
  "sendErrors",
  /** errno of the last of them. */
  "sendErrno",
  /** Receipts that failed; what waited may be lost. */
  "receiveErrors",
  "receiveErrno",
  "writeErrors",
  "writeErrno",
  /** Packets with a wrong checksum: passed on as they are, for the receiver to judge. */
  "badChecksums",
  "icmpSent",
  /** Turns of the loop: how often the worker was woken. */
  "wakeups",
] as const;

export type Counter = (typeof COUNTERS)[number];

/** Place of each counter. */
export const COUNTER = Object.fromEntries(COUNTERS.map((name, at) => [name, at])) as Readonly<
  Record<Counter, number>
>;

/** Bytes of the shared memory: a 64-bit float each, which every machine reads and writes in one piece. */
export const COUNTERS_LENGTH = COUNTERS.length * 8;

/** The counters by name, as they are now. */
export function readCounters(shared: Float64Array): Readonly<Record<Counter, number>> {
  return Object.fromEntries(COUNTERS.map((name, at) => [name, shared[at] ?? 0])) as Record<Counter, number>;
}
