import type { UdpSocket } from "../system/sockets.ts";
import type { Tun } from "../system/tun.ts";

/** What a data path works with; file descriptors are the process's. */
export interface StartMessage {
  readonly kind: "start";
  readonly tun: Tun;
  readonly ipv4?: UdpSocket;
  readonly ipv6?: UdpSocket;
  /** Raw sockets for ICMP errors, -1 for none. */
  readonly raw4: number;
  readonly raw6: number;
  /** eventfd(2): readable when a message waits. */
  readonly wake: number;
  readonly counters: SharedArrayBuffer;
  /** One 32-bit number: messages posted so far, this one included. */
  readonly posted: SharedArrayBuffer;
  /** Our address on the tunnel as words, for ICMP errors; absent for a family that is off. */
  readonly source4?: readonly number[];
  readonly source6?: readonly number[];
}

/** Numbers of one route in {@link PeersMessage}. */
export const ROUTE_FIELDS = 7;

/**
 * All peers there are. A route is seven numbers: prefix length, plus 256 for IPv6; four words of the subnet; index of
 * the endpoint; 0. `endpoints` are socket addresses, 32 bytes each.
 */
export interface PeersMessage {
  readonly kind: "peers";
  readonly routes: Int32Array;
  readonly endpoints: Uint8Array;
}

/** The loop ends; the file descriptors are free then. */
export interface StopMessage {
  readonly kind: "stop";
}

export type ToWorker = StartMessage | PeersMessage | StopMessage;

/** What the worker tells: that it took a message over, that it has ended, or why it cannot go on. */
export type FromWorker =
  | { readonly kind: "done"; readonly of: ToWorker["kind"] }
  | { readonly kind: "failed"; readonly text: string };
