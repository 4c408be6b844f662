import { expect, test } from "bun:test";
import type { WireguardState } from "flannel/sdk";
import { Hearing } from "../../../backends/wireguard/hearing.ts";
import { keyOf } from "./leases.ts";

/** A device with these peers: number, bytes received and sent. */
const state = (
  ...peers: readonly (readonly [n: number, rxBytes: number, txBytes: number])[]
): WireguardState => ({
  listenPort: 51820,
  peers: peers.map(([n, rxBytes, txBytes]) => ({
    publicKey: keyOf(n),
    keepalive: 0,
    allowedIPs: [],
    rxBytes,
    txBytes,
  })),
});

test("a peer that was sent something and does not answer in time is silent", () => {
  const hearing = new Hearing();
  const at = (now: number, rx: number, tx: number) =>
    [...hearing.findSilent(state([2, rx, tx]), now, 0)].length > 0;
  expect(at(0, 50, 70)).toBe(false);
  // Nothing was sent: there is nothing to answer.
  expect(at(100, 50, 70)).toBe(false);
  expect(at(105, 50, 80)).toBe(false);
  expect(at(120, 50, 90)).toBe(false);
  expect(at(121, 50, 90)).toBe(true);
  expect(at(126, 50, 99)).toBe(true);
  expect(at(127, 51, 99)).toBe(false);
  // It was heard: what comes later is left to the time of a session.
  expect(at(200, 51, 150)).toBe(false);
  expect(at(250, 51, 150)).toBe(false);
});

test("keep-alives are not answered, but come from both sides", () => {
  const hearing = new Hearing();
  const silentAt = (now: number, tx: number) => hearing.findSilent(state([2, 0, tx]), now, 25).size;
  expect([silentAt(0, 0), silentAt(10, 32), silentAt(50, 64), silentAt(51, 64)]).toEqual([0, 0, 0, 1]);
});

test("peers that come later, and a device that had none, are not in doubt", () => {
  const hearing = new Hearing();
  hearing.findSilent(state([2, 0, 0]), 0, 0);
  hearing.findSilent(state([2, 0, 0], [3, 0, 10]), 1, 0);
  expect([...hearing.findSilent(state([2, 0, 0], [3, 0, 99]), 100, 0)]).toEqual([]);
});
