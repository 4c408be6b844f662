import { expect, test } from "bun:test";
import type { InterfaceChoice } from "../../../core/host/interface/choose.ts";
import { isDowngrade, isUpgrade } from "../../../core/host/interface/keep.ts";

function choice(addresses: { ipv4?: string; ipv6?: string }, name = "ext0"): InterfaceChoice {
  const link = { name, index: 2, mtu: 1500, up: true, running: true, loopback: false };
  return { candidate: { link, ipv4: [], ipv6: [] }, reason: "test", ...addresses };
}

test.each([
  ["another global address", { ipv4: "192.0.2.1" }, { ipv4: "192.0.2.2" }, false],
  ["IPv4 lost to an automatic one", { ipv4: "192.0.2.1" }, { ipv4: "169.254.7.7" }, true],
  ["IPv6 lost to a link-local one", { ipv6: "fd00:db8::1" }, { ipv6: "fe80::1" }, true],
  ["one family of two", { ipv4: "192.0.2.1", ipv6: "fd00::1" }, { ipv4: "192.0.2.1", ipv6: "fe80::1" }, true],
  ["link-local before and after", { ipv6: "fe80::1" }, { ipv6: "fe80::2" }, false],
  ["link-local to global", { ipv6: "fe80::1" }, { ipv6: "fd00::1" }, false],
])("a downgrade: %s", (_name, from, to, expected) => {
  expect(isDowngrade(choice(from), choice(to))).toBe(expected);
});

test("an upgrade is a global address on the same interface, after a start with a link-local one", () => {
  const local = choice({ ipv6: "fe80::1" });
  expect(isUpgrade(local, choice({ ipv6: "fd00::1" }))).toBe(true);
  expect(isUpgrade(local, choice({ ipv6: "fd00::1" }, "tailscale0"))).toBe(false);
  expect(isUpgrade(choice({ ipv6: "fd00::1" }), choice({ ipv6: "fd00::2" }))).toBe(false);
});
