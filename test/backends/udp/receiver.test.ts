import { expect, test } from "bun:test";
import { closeSync, openSync } from "node:fs";
import type { Coalescer } from "../../../backends/udp/datapath/coalescer.ts";
import { COUNTERS_LENGTH, readCounters } from "../../../backends/udp/datapath/counters.ts";
import type { IcmpReporter } from "../../../backends/udp/datapath/icmp.ts";
import { PeerTable } from "../../../backends/udp/datapath/peer-table.ts";
import { Receiver } from "../../../backends/udp/datapath/receiver.ts";
import { judgeCounters } from "../../../backends/udp/findings.ts";
import { Arena } from "../../../backends/udp/packet/arena.ts";
import { openLibc } from "../../../backends/udp/system/libc.ts";

test("a receipt that fails is counted as what it is, with the system's reason", () => {
  const counters = new Float64Array(COUNTERS_LENGTH / 8);
  const before = readCounters(counters);
  // No packet comes this far.
  const [icmp, coalescer] = [{} as IcmpReporter, {} as Coalescer];
  const table = new PeerTable({ routes: new Int32Array(0), endpoints: new Uint8Array(0) });
  const parts = { arena: new Arena(2 * 1024 * 1024), libc: openLibc(), counters, icmp, coalescer, table };
  // A file is no socket.
  const fd = openSync("/dev/null", "r");
  try {
    const receiver = new Receiver(parts, "ipv4", { fd, segments: false, coalesces: false });
    expect(receiver.run()).toBe(false);
  } finally {
    closeSync(fd);
  }
  const now = readCounters(counters);
  // ENOTSOCK (asm-generic/errno.h).
  expect(now).toMatchObject({ receiveErrors: 1, receiveErrno: 88, sendErrors: 0 });
  expect(judgeCounters(before, now).map(({ code, text }) => [code, text])).toEqual([
    ["UDP_RECEIVE_FAILED", "the last error was errno 88"],
  ]);
});
