import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { Families, HostFacts, Peer, PeerFamily, WireguardPeerState, WireguardState } from "flannel/sdk";
import { devicesOf, podMtu } from "../../backends/wireguard/devices.ts";
import { diffPeers } from "../../backends/wireguard/difference.ts";
import { optionFindings } from "../../backends/wireguard/findings.ts";
import { derivePublicKey, generatePrivateKey, isPublicKey } from "../../backends/wireguard/key.ts";
import { type Options, options } from "../../backends/wireguard/options.ts";
import { planPeers, type WantedPeer } from "../../backends/wireguard/peers.ts";
import { anyBackendData } from "../contract/inputs.ts";
import { FACTS } from "./facts.ts";

const IPV4: Families = { ipv4: true, ipv6: false };
const IPV6: Families = { ipv4: false, ipv6: true };
const DUAL: Families = { ipv4: true, ipv6: true };
const NETWORKS = ["10.5.0.0/16", "fd00:5::/32"];

function optionsWith(raw: Readonly<Record<string, unknown>> = {}): Options {
  const result = options["~standard"].validate(raw);
  if (result instanceof Promise || result.issues) throw new Error(JSON.stringify(result));
  return result.value;
}

const issuesOf = (raw: Readonly<Record<string, unknown>>) => {
  const result = options["~standard"].validate(raw);
  return result instanceof Promise ? [] : (result.issues ?? []).map(({ message }) => message);
};

/** A public key that only n has. */
const keyOf = (n: number) => Buffer.alloc(32, n).toString("base64");
const OWN_KEY = keyOf(1);

function peerOf(
  n: number,
  change: Partial<Peer> = {},
  data: unknown = { PublicKey: keyOf(n), Port: 51820 },
): Peer {
  return {
    key: `10.5.${n}.0-24`,
    backendType: "wireguard",
    ipv4: { subnet: `10.5.${n}.0/24`, publicIP: `192.0.2.${n}`, data },
    ...change,
  };
}

const v6Of = (n: number, data: unknown = { PublicKey: keyOf(n), Port: 51821 }): PeerFamily => ({
  subnet: `fd00:5:${n}::/64`,
  publicIP: `2001:db8::${n}`,
  data,
});

function plan(
  peers: readonly Peer[],
  raw: Readonly<Record<string, unknown>> = {},
  {
    families = DUAL,
    facts = FACTS,
    present = new Map(),
  }: { families?: Families; facts?: HostFacts; present?: ReadonlyMap<string, WireguardState> } = {},
) {
  const options = optionsWith(raw);
  const devices = devicesOf(options, families);
  const { wanted, ...rest } = planPeers(peers, {
    options,
    devices,
    networks: NETWORKS,
    ownPublicKey: OWN_KEY,
    present,
    facts,
  });
  return { wanted: Object.fromEntries(wanted), ...rest };
}

describe("options", () => {
  test("have upstream's names and defaults", () => {
    expect(optionsWith()).toEqual({
      ListenPort: 51820,
      ListenPortV6: 51821,
      MTU: 0,
      PSK: "",
      PersistentKeepaliveInterval: 0,
      Mode: "separate",
    });
  });

  test.each([
    ["short", Buffer.alloc(31, 1).toString("base64")],
    ["long", Buffer.alloc(33, 1).toString("base64")],
    ["hex", Buffer.alloc(32, 1).toString("hex")],
    ["base64url", Buffer.alloc(32, 0xff).toString("base64url")],
    ["with a line end", `${keyOf(1)}\n`],
    ["a number", 12345],
  ])("a PSK that is %s is refused without being shown", (_, PSK) => {
    const issues = issuesOf({ PSK });
    expect(issues).toHaveLength(1);
    expect(issues[0]).toContain("wg genpsk");
    expect(issues[0]).not.toContain(String(PSK));
  });

  test("a mode is one of four, in any case; ports and intervals have 16 bits", () => {
    expect(optionsWith({ Mode: "IPv6" }).Mode).toBe("ipv6");
    expect(issuesOf({ Mode: "both" })).toEqual(['Mode must be "separate", "auto", "ipv4" or "ipv6"']);
    expect(issuesOf({ ListenPort: 0, ListenPortV6: 65536, PersistentKeepaliveInterval: -1 })).toHaveLength(3);
    expect(issuesOf({ MTU: 600 })).toHaveLength(1);
  });
});

describe("devices", () => {
  test("are one per family in mode separate, else one for both", () => {
    const [v4, v6] = [
      { name: "flannel-wg", port: 51820, carries: ["ipv4"] },
      { name: "flannel-wg-v6", port: 51821, carries: ["ipv6"] },
    ] as const;
    expect(devicesOf(optionsWith(), DUAL)).toEqual([v4, v6]);
    expect(devicesOf(optionsWith(), IPV6)).toEqual([v6]);
    expect(devicesOf(optionsWith({ Mode: "auto", ListenPort: 7 }), DUAL)).toEqual([
      { name: "flannel-wg", port: 7, carries: ["ipv4", "ipv6"] },
    ]);
    expect(devicesOf(optionsWith({ Mode: "ipv6" }), IPV4)).toEqual([
      { name: "flannel-wg", port: 51820, carries: ["ipv4"] },
    ]);
  });

  test("leave 80 bytes for the encapsulation, of the interface or of a lower option", () => {
    expect(podMtu(optionsWith(), FACTS)).toBe(1420);
    expect(podMtu(optionsWith({ MTU: 1400 }), FACTS)).toBe(1320);
    expect(podMtu(optionsWith({ MTU: 9000 }), FACTS)).toBe(1420);
  });

  test("that do not fit the host or the network are findings", () => {
    const codes = (raw: Readonly<Record<string, unknown>>, families: Families) =>
      optionFindings(optionsWith(raw), families, FACTS).map(({ code, severity }) => `${severity} ${code}`);
    expect(codes({}, DUAL)).toEqual([]);
    expect(codes({ MTU: 9000 }, IPV4)).toEqual(["warning WIREGUARD_MTU_CLAMPED"]);
    expect(codes({ MTU: 1300 }, DUAL)).toEqual(["error WIREGUARD_MTU_IPV6"]);
    expect(codes({ MTU: 1300 }, IPV4)).toEqual([]);
    expect(codes({ Mode: "ipv4" }, IPV6)).toEqual(["error WIREGUARD_MODE"]);
    expect(codes({ Mode: "auto" }, IPV6)).toEqual([]);
  });
});

describe("keys", () => {
  test("are derived as `wg pubkey` does it", () => {
    const secret = Buffer.from(Array.from({ length: 32 }, (_, n) => n)).toString("base64");
    expect(derivePublicKey(secret)).toBe("j0DFrbaPJWJK5bIU6nZ6bslNgp09e14a0bpvPiE4KF8=");
    expect(() => derivePublicKey("c2VjcmV0")).toThrow("not a WireGuard key");
  });

  test("made anew are clamped and differ", () => {
    const keys = Array.from({ length: 20 }, generatePrivateKey);
    expect(new Set(keys).size).toBe(20);
    for (const key of keys) {
      const bytes = Buffer.from(key, "base64");
      expect([bytes.length, (bytes[0] ?? 0) & 7, (bytes[31] ?? 0) & 0xc0]).toEqual([32, 0, 0x40]);
      expect(isPublicKey(derivePublicKey(key))).toBe(true);
    }
  });

  test("all zeros, other lengths and other types are none", () => {
    for (const value of [Buffer.alloc(32).toString("base64"), "", "x", 7, null, keyOf(3).slice(0, -1)]) {
      expect(isPublicKey(value)).toBe(false);
    }
  });
});

describe("peers in mode separate", () => {
  test("are on the device of each family, over that family, with the port of their lease", () => {
    const data = { PublicKey: keyOf(2), Port: 7777 };
    const raw = { PSK: keyOf(9), PersistentKeepaliveInterval: 25 };
    const { wanted, unusable } = plan([peerOf(2, { ipv6: v6Of(2) }, data)], raw);
    const common = { publicKey: keyOf(2), presharedKey: keyOf(9), keepalive: 25 };
    expect(wanted).toEqual({
      "flannel-wg": [
        { ...common, endpoint: { address: "192.0.2.2", port: 7777 }, allowedIPs: ["10.5.2.0/24"] },
      ],
      "flannel-wg-v6": [
        { ...common, endpoint: { address: "2001:db8::2", port: 51821 }, allowedIPs: ["fd00:5:2::/64"] },
      ],
    });
    expect(unusable).toEqual([]);
  });

  test.each([undefined, 0, -1, 65536, 1.5, "51820", null])("a port of %p is replaced by ours", (Port) => {
    const { wanted } = plan([peerOf(2, {}, { PublicKey: keyOf(2), Port })], { ListenPort: 4242 });
    expect(wanted["flannel-wg"]?.[0]?.endpoint.port).toBe(4242);
  });

  test("one bad half leaves the other half and the other peers working", () => {
    const bad = peerOf(2, { ipv6: v6Of(2) }, { Port: 1 });
    const { wanted, unusable } = plan([bad, peerOf(3)]);
    expect(wanted["flannel-wg"]?.map(({ publicKey }) => publicKey)).toEqual([keyOf(3)]);
    expect(wanted["flannel-wg-v6"]?.map(({ publicKey }) => publicKey)).toEqual([keyOf(2)]);
    expect(unusable).toEqual([{ key: bad.key, reason: 'has no usable PublicKey for ipv4: {"Port":1}' }]);
  });

  test("of another backend, with our key, with another's key, or inside the cluster's network are told apart", () => {
    const inside = { subnet: "10.5.6.0/24", publicIP: "10.5.9.9", data: { PublicKey: keyOf(6) } };
    const { wanted, unusable, clones } = plan([
      peerOf(2, { backendType: "vxlan" }),
      peerOf(3, {}, { PublicKey: OWN_KEY }),
      peerOf(5, {}, { PublicKey: keyOf(4) }),
      peerOf(4),
      peerOf(6, { ipv4: inside }),
    ]);
    expect(wanted["flannel-wg"]?.map(({ allowedIPs }) => allowedIPs)).toEqual([["10.5.4.0/24"]]);
    expect(clones).toEqual(["10.5.3.0-24"]);
    expect(unusable.map(({ key, reason }) => `${key} ${reason}`)).toEqual([
      '10.5.2.0-24 uses backend "vxlan", this node uses "wireguard"',
      "10.5.3.0-24 has the same key as this node: its disk was cloned",
      "10.5.5.0-24 has the same key as 10.5.4.0-24: one disk was cloned",
      "10.5.6.0-24 its address 10.5.9.9 lies inside the cluster's own network",
    ]);
  });
});

test("of two peers with one key the one that the device has stays", () => {
  const peers = [peerOf(4), peerOf(5, {}, { PublicKey: keyOf(4) })];
  const chosen = (allowedIPs: readonly string[]) => {
    const has = { publicKey: keyOf(4), keepalive: 0, allowedIPs, rxBytes: 0, txBytes: 0 };
    const present = new Map([["flannel-wg", { listenPort: 51820, peers: [has] }]]);
    const { wanted, unusable } = plan(peers, {}, { present });
    return [wanted["flannel-wg"]?.map((peer) => peer.allowedIPs[0]), unusable.map(({ key }) => key)];
  };
  expect(chosen(["10.5.4.0/24"])).toEqual([["10.5.4.0/24"], ["10.5.5.0-24"]]);
  expect(chosen(["10.5.5.0/24"])).toEqual([["10.5.5.0/24"], ["10.5.4.0-24"]]);
  expect(chosen([])).toEqual([["10.5.4.0/24"], ["10.5.5.0-24"]]);
});

describe("peers of a single device", () => {
  const dual = peerOf(2, { ipv6: v6Of(2) });
  const endpointIn = (Mode: string, peer: Peer, external: Partial<HostFacts["external"]> = {}) => {
    const facts = { ...FACTS, external: { ...FACTS.external, ...external } };
    const { wanted, unusable } = plan([peer], { Mode }, { facts });
    const [found] = wanted["flannel-wg"] ?? [];
    return found ? `${found.endpoint.address} ${found.endpoint.port}` : unusable[0]?.reason;
  };
  const at = (ipv4: string, ipv6: string) => {
    const data = { PublicKey: keyOf(2), Port: 51820 };
    return peerOf(2, {
      ipv4: { subnet: "10.5.2.0/24", publicIP: ipv4, data },
      ipv6: { subnet: "fd00:5:2::/64", publicIP: ipv6, data: { ...data, Port: 51821 } },
    });
  };

  test("have both subnets, over one family, on the port that is listened on", () => {
    expect(plan([dual], { Mode: "ipv6" }).wanted["flannel-wg"]).toEqual([
      {
        publicKey: keyOf(2),
        endpoint: { address: "2001:db8::2", port: 51820 },
        keepalive: 0,
        allowedIPs: ["10.5.2.0/24", "fd00:5:2::/64"],
      },
    ]);
  });

  test("are reached over the family of the mode, or not at all", () => {
    expect(endpointIn("ipv4", dual)).toBe("192.0.2.2 51820");
    expect(endpointIn("ipv6", dual)).toBe("2001:db8::2 51820");
    expect(endpointIn("ipv6", peerOf(2))).toBe("has no IPv6 address");
    expect(endpointIn("ipv4", { key: "k", backendType: "wireguard", ipv6: v6Of(2) })).toBe(
      "has no IPv4 address",
    );
  });

  test("auto chooses by what is public", () => {
    const own6 = { publicIPv6: "2001:db8::1" };
    expect(endpointIn("auto", peerOf(2))).toBe("192.0.2.2 51820");
    expect(endpointIn("auto", { key: "k", backendType: "wireguard", ipv6: v6Of(2) })).toBe(
      "2001:db8::2 51821",
    );
    expect(endpointIn("auto", at("203.0.113.2", "2001:db8::2"), own6)).toBe("203.0.113.2 51820");
    expect(endpointIn("auto", at("192.168.0.2", "2001:db8::2"), own6)).toBe("2001:db8::2 51820");
    expect(endpointIn("auto", at("172.31.0.2", "2001:db8::2"), own6)).toBe("2001:db8::2 51820");
    expect(endpointIn("auto", at("172.32.0.2", "2001:db8::2"), own6)).toBe("172.32.0.2 51820");
    expect(endpointIn("auto", at("192.168.0.2", "2001:db8::2"), { publicIPv6: "fd00::1" })).toBe(
      "192.168.0.2 51820",
    );
    expect(endpointIn("auto", at("192.168.0.2", "fd00::2"), own6)).toBe("192.168.0.2 51820");
  });

  test("with two keys cannot be one peer", () => {
    const peer = peerOf(2, { ipv6: v6Of(2, { PublicKey: keyOf(3) }) });
    expect(plan([peer], { Mode: "auto" }).unusable[0]?.reason).toContain("different keys");
    expect(plan([peer]).unusable).toEqual([]);
  });
});

test("no lease data makes planning throw, and every peer is either planned or named", () => {
  const half = (n: number) => fc.record({ data: anyBackendData }).map(({ data }) => ({ ...v6Of(n), data }));
  const mode = fc.constantFrom("separate", "auto", "ipv4", "ipv6");
  fc.assert(
    fc.property(anyBackendData, half(2), mode, (data, ipv6, Mode) => {
      const { wanted, unusable } = plan([peerOf(2, { ipv6 }, data), peerOf(3)], { Mode });
      const known = Object.values(wanted).flat();
      if (Mode !== "ipv6") expect(known.some(({ publicKey }) => publicKey === keyOf(3))).toBe(true);
      if (unusable.every(({ key }) => key !== "10.5.2.0-24")) {
        expect(known.filter(({ publicKey }) => publicKey !== keyOf(3)).length).toBeGreaterThan(0);
      }
    }),
  );
});

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
    diffPeers(wanted, actual, { endpoints, now: NOW });

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

  test("is the endpoint when the lease changed, or nothing has been heard for a session's time", () => {
    const roaming = state(actualOf(2, { endpoint: elsewhere, lastHandshake: NOW - 100 }));
    expect(diff([wantedOf(2)], roaming, new Map([[keyOf(2), { address: "192.0.2.77", port: 1 }]]))).toEqual(
      moved,
    );
    expect(
      diff([wantedOf(2)], state(actualOf(2, { endpoint: elsewhere, lastHandshake: NOW - 181 }))),
    ).toEqual(moved);
    expect(diff([wantedOf(2)], state(actualOf(2, { endpoint: elsewhere })))).toEqual(moved);
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
