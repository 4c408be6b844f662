import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { WireguardPeerState, WireguardState } from "flannel/sdk";
import { diffPeers } from "../../../backends/wireguard/difference.ts";
import type { WantedPeer } from "../../../backends/wireguard/peers.ts";
import { keyOf } from "./leases.ts";

describe("what a device lacks", () => {
  const NOW = 1_764_438_000;
  const wantedOf = (n: number, change: Partial<WantedPeer> = {}): WantedPeer => ({
    publicKey: keyOf(n),
    endpoint: { address: `192.0.2.${n}`, port: 51820 },
    keepalive: 0,
    allowedIPs: [`10.5.${n}.0/24`],
    ...change,
  });
  const actualOf = (n: number, change: Partial<WireguardPeerState> = {}): WireguardPeerState => ({
    ...wantedOf(n),
    rxBytes: 0,
    txBytes: 0,
    ...change,
  });
  const state = (...peers: readonly WireguardPeerState[]): WireguardState => ({ listenPort: 51820, peers });
  const diff = (wanted: readonly WantedPeer[], actual: WireguardState, endpoints = new Map()) =>
    diffPeers(wanted, actual, { endpoints, silent: new Set([keyOf(4)]), now: NOW });

  test("is nothing when all is as wanted, in whatever order", () => {
    const allowedIPs = ["10.5.2.0/24", "fd00::/64"];
    const actual = state(
      actualOf(3),
      actualOf(2, { allowedIPs: [...allowedIPs].reverse(), lastHandshake: NOW }),
    );
    expect(diff([wantedOf(2, { allowedIPs }), wantedOf(3)], actual)).toEqual([]);
  });

  test("is a new peer as a whole, and the removal of one that is not wanted, first", () => {
    expect(diff([wantedOf(2)], state(actualOf(9)))).toEqual([
      { publicKey: keyOf(9), remove: true },
      wantedOf(2),
    ]);
  });

  test("is only what differs", () => {
    expect(
      diff(
        [wantedOf(2, { keepalive: 25 }), wantedOf(3, { presharedKey: keyOf(8) })],
        state(actualOf(2), actualOf(3)),
      ),
    ).toEqual([
      { publicKey: keyOf(2), keepalive: 25 },
      { publicKey: keyOf(3), presharedKey: keyOf(8) },
    ]);
    expect(diff([wantedOf(2)], state(actualOf(2, { presharedKey: keyOf(8) })))).toEqual([
      { publicKey: keyOf(2), presharedKey: null },
    ]);
    expect(diff([wantedOf(2)], state(actualOf(2, { allowedIPs: ["0.0.0.0/0"] })))).toEqual([
      { publicKey: keyOf(2), allowedIPs: ["10.5.2.0/24"] },
    ]);
  });

  const elsewhere = { address: "198.51.100.9", port: 4500 };
  const moved = [{ publicKey: keyOf(2), endpoint: wantedOf(2).endpoint }];

  test("is not the endpoint of a peer that roams and talks", () => {
    const roaming = state(actualOf(2, { endpoint: elsewhere, lastHandshake: NOW - 100 }));
    expect(diff([wantedOf(2)], roaming)).toEqual([]);
    expect(diff([wantedOf(2)], roaming, new Map([[keyOf(2), wantedOf(2).endpoint]]))).toEqual([]);
  });

  test("is the endpoint of a peer that is silent since the start", () => {
    const there = { endpoint: elsewhere, lastHandshake: NOW - 100 };
    expect(diff([wantedOf(4), wantedOf(5)], state(actualOf(4, there), actualOf(5, there)))).toEqual([
      { publicKey: keyOf(4), endpoint: wantedOf(4).endpoint },
    ]);
  });

  test("is the endpoint of one that the device has over the other family since before the start", () => {
    const there = { endpoint: { address: "2001:db8::2", port: 51820 }, lastHandshake: NOW - 1 };
    expect(diff([wantedOf(2)], state(actualOf(2, there)))).toEqual(moved);
    const known = new Map([[keyOf(2), wantedOf(2).endpoint]]);
    expect(diff([wantedOf(2)], state(actualOf(2, there)), known)).toEqual([]);
  });

  test("is the endpoint when the lease changed, or nothing has been heard for a session's time", () => {
    const roaming = state(actualOf(2, { endpoint: elsewhere, lastHandshake: NOW - 100 }));
    expect(diff([wantedOf(2)], roaming, new Map([[keyOf(2), { address: "192.0.2.77", port: 1 }]]))).toEqual(
      moved,
    );
    expect(
      diff([wantedOf(2)], state(actualOf(2, { endpoint: elsewhere, lastHandshake: NOW - 181 }))),
    ).toEqual(moved);
    expect(diff([wantedOf(2)], state(actualOf(2, { endpoint: elsewhere })))).toEqual(moved);
    const ahead = (seconds: number) =>
      diff([wantedOf(2)], state(actualOf(2, { endpoint: elsewhere, lastHandshake: NOW + seconds })));
    // The clock was set back.
    expect(ahead(3)).toEqual([]);
    expect(ahead(3_600)).toEqual(moved);
    const { endpoint: _, ...unknown } = actualOf(2);
    expect(diff([wantedOf(2)], state(unknown))).toEqual(moved);
  });

  test("leads to exactly the wanted peers, from whatever there was", () => {
    const any = fc.uniqueArray(fc.integer({ min: 2, max: 9 }), { maxLength: 8 });
    const swap = fc.boolean();
    fc.assert(
      fc.property(any, any, swap, (has, wants, swapped) => {
        const wanted = wants.map((n) => wantedOf(n));
        const actual = has.map((n) => actualOf(n, swapped ? { allowedIPs: [`10.5.${n + 1}.0/24`] } : {}));
        expect(applyChanges(actual, diff(wanted, state(...actual)))).toEqual(
          Object.fromEntries(wanted.map(({ publicKey, allowedIPs }) => [publicKey, [...allowedIPs]])),
        );
      }),
    );
  });

  /** What the kernel makes of a change: a prefix belongs to the peer that got it last. */
  function applyChanges(actual: readonly WireguardPeerState[], changes: ReturnType<typeof diff>) {
    const prefixes = new Map(actual.map(({ publicKey, allowedIPs }) => [publicKey, [...allowedIPs]]));
    for (const { publicKey, remove, allowedIPs } of changes) {
      if (remove) prefixes.delete(publicKey);
      else if (allowedIPs) {
        for (const list of prefixes.values()) {
          for (const cidr of allowedIPs) if (list.includes(cidr)) list.splice(list.indexOf(cidr), 1);
        }
        prefixes.set(publicKey, [...allowedIPs]);
      }
    }
    return Object.fromEntries(prefixes);
  }
});
