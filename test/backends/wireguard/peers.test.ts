import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { HostFacts, Peer } from "flannel/sdk";
import { anyBackendData } from "../../contract/inputs.ts";
import { FACTS } from "../facts.ts";
import { keyOf, OWN_KEY, peerOf, plan, v6Of } from "./leases.ts";

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
      "10.5.5.0-24 has the same key as the newer lease 10.5.4.0-24: its node moved there, or one disk was cloned",
      "10.5.6.0-24 its address 10.5.9.9 lies inside the cluster's own network",
    ]);
  });
});

test("of two leases with one key the newer counts, in whatever order they come", () => {
  const older = peerOf(4, { modRevision: 7 });
  const newer = peerOf(5, { modRevision: 20 }, { PublicKey: keyOf(4), Port: 51820 });
  for (const peers of [
    [older, newer],
    [newer, older],
  ]) {
    const { wanted, unusable } = plan(peers);
    expect(
      wanted["flannel-wg"]?.map(({ allowedIPs, endpoint }) => [...allowedIPs, endpoint.address]),
    ).toEqual([["10.5.5.0/24", "192.0.2.5"]]);
    expect(unusable).toEqual([
      {
        key: older.key,
        reason: `has the same key as the newer lease ${newer.key}: its node moved there, or one disk was cloned`,
      },
    ]);
  }
  expect(plan([{ ...older, modRevision: 21 }, newer]).unusable.map(({ key }) => key)).toEqual([newer.key]);
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
