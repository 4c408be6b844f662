import { describe, expect, test } from "bun:test";
import { type HostDump, listCandidates } from "../../../../core/host/interface/candidates.ts";
import { chooseInterface, type InterfaceWish } from "../../../../core/host/interface/choose.ts";
import { address, defaultRoute, link, multipathDefault, NODE, SERVER } from "./hosts.ts";

const V4 = { ipv4: true, ipv6: false };
const V6 = { ipv4: false, ipv6: true };
const DUAL = { ipv4: true, ipv6: true };
type Families = typeof V4;

/** `name ipv4 ipv6` of the choice, or the message of the fault. */
function choose(dump: HostDump, wish: Partial<InterfaceWish> = {}, families: Families = V4): string {
  const decision = chooseInterface(dump, { iface: [], ifaceRegex: [], ...wish }, families);
  if ("fault" in decision) return decision.fault.message;
  const { candidate, ipv4, ipv6 } = decision.choice;
  return [candidate.link.name, ipv4, ipv6].filter((part) => part !== undefined).join(" ");
}

const withAddresses = (...addresses: HostDump["addresses"]): HostDump => ({ ...SERVER, addresses });
const withRoutes = (...routes: HostDump["routes"]): HostDump => ({ ...SERVER, routes });
const MULTIHOMED = withAddresses(address("eth0", "10.1.0.1/16"), address("eth0", "192.168.7.1/24"));

describe("the default route", () => {
  test.each<[string, HostDump, Families, string]>([
    ["of IPv4", SERVER, V4, "eth0 192.0.2.1"],
    ["of IPv6", SERVER, V6, "eth0 2001:db8::1"],
    ["of both", SERVER, DUAL, "eth0 192.0.2.1 2001:db8::1"],
    [
      "with the lowest metric",
      withRoutes(
        defaultRoute("eth0", "192.0.2.254", { metric: 600 }),
        defaultRoute("eth1", "10.0.0.254", { metric: 100 }),
      ),
      V4,
      "eth1 10.0.0.1",
    ],
    [
      "with several legs and no device of its own",
      withRoutes(multipathDefault("eth1", "eth0")),
      V4,
      "eth1 10.0.0.1",
    ],
    [
      "that a dead link cannot carry is passed over",
      withRoutes(
        defaultRoute("eth1", "10.0.0.254", { dead: true }),
        defaultRoute("eth0", "192.0.2.254", { metric: 10 }),
      ),
      V4,
      "eth0 192.0.2.1",
    ],
    [
      "that is a blackhole is none",
      withRoutes(
        { ...defaultRoute("eth1", "10.0.0.254"), type: 6 },
        defaultRoute("eth0", "192.0.2.254", { metric: 10 }),
      ),
      V4,
      "eth0 192.0.2.1",
    ],
    [
      "through a device of ours is passed over",
      { ...NODE, routes: [defaultRoute("flannel.1", "10.5.1.0"), ...NODE.routes] },
      V4,
      "eth0 192.0.2.1",
    ],
    ["on a node full of container devices", NODE, DUAL, "eth0 192.0.2.1 2001:db8::1"],
    [
      "that enslaves the device to a VRF",
      {
        ...SERVER,
        links: SERVER.links.map((each) => (each.name === "eth0" ? { ...each, master: 9 } : each)),
      },
      V4,
      "eth0 192.0.2.1",
    ],
    [
      "of the interface both families share",
      withRoutes(
        defaultRoute("eth1", "10.0.0.254"),
        defaultRoute("eth0", "192.0.2.254", { metric: 5 }),
        defaultRoute("eth0", "fe80::fe"),
      ),
      DUAL,
      "eth0 192.0.2.1 2001:db8::1",
    ],
  ])("%s", (_, dump, families, choice) => {
    expect(choose(dump, {}, families)).toBe(choice);
  });

  test.each<[string, HostDump, Families, string]>([
    ["none yet at boot", withRoutes(), V4, "default route: there is none for IPv4"],
    [
      "none of IPv6",
      withRoutes(defaultRoute("eth0", "192.0.2.254")),
      V6,
      "default route: there is none for IPv6",
    ],
    [
      "each family on another interface",
      withRoutes(defaultRoute("eth1", "10.0.0.254"), defaultRoute("eth0", "fe80::fe")),
      DUAL,
      "no interface carries both an IPv4 and an IPv6 one",
    ],
    ["an interface without address", withAddresses(), V4, "eth0 has no usable IPv4 address"],
    [
      "an interface that lacks one family",
      withAddresses(address("eth0", "192.0.2.1/24")),
      DUAL,
      "eth0 has no usable IPv6 address",
    ],
    ["an interface with MTU 0", { ...SERVER, links: [link("eth0", { mtu: 0 })] }, V4, "eth0 has MTU 0"],
  ])("cannot be followed: %s", (_, dump, families, why) => {
    const message = choose(dump, {}, families);
    expect(message).toStartWith("no interface to reach other hosts by: ");
    expect(message).toContain(why);
  });
});

describe("the address of the chosen interface", () => {
  test.each<[string, HostDump["addresses"], Families, string]>([
    [
      "is the first of several",
      [address("eth0", "192.0.2.7/24"), address("eth0", "192.0.2.1/24")],
      V4,
      "eth0 192.0.2.7",
    ],
    [
      "is a lasting one before one of DHCP",
      [address("eth0", "192.0.2.7/24", { permanent: false }), address("eth0", "192.0.2.1/24")],
      V4,
      "eth0 192.0.2.1",
    ],
    [
      "is a global one before a link-local one",
      [address("eth0", "169.254.9.9/16"), address("eth0", "192.0.2.1/24")],
      V4,
      "eth0 192.0.2.1",
    ],
    [
      "is a link-local one where there is no other",
      [address("eth0", "169.254.9.9/16")],
      V4,
      "eth0 169.254.9.9",
    ],
    [
      "is no deprecated one",
      [address("eth0", "2001:db8::9/64", { deprecated: true }), address("eth0", "2001:db8::1/64")],
      V6,
      "eth0 2001:db8::1",
    ],
    [
      "is no temporary one while there is a lasting one",
      [
        address("eth0", "2001:db8::9/64", { temporary: true, permanent: false }),
        address("eth0", "2001:db8::1/64", { permanent: false }),
      ],
      V6,
      "eth0 2001:db8::1",
    ],
    [
      "is a global IPv6 one before fe80::",
      [address("eth0", "fe80::1/64"), address("eth0", "fd00::1/64")],
      V6,
      "eth0 fd00::1",
    ],
  ])("%s", (_, addresses, families, choice) => {
    expect(choose(withAddresses(...addresses), {}, families)).toBe(choice);
  });

  test("is never a loopback, unspecified or multicast one", () => {
    const [eth0] = listCandidates({
      ...SERVER,
      links: [link("eth0")],
      addresses: ["127.0.0.1/8", "0.0.0.0/8", "::1/128", "::/128", "ff02::1/128"].map((text) =>
        address("eth0", text),
      ),
    });
    expect([eth0?.ipv4, eth0?.ipv6]).toEqual([[], []]);
  });
});

describe("--iface", () => {
  test.each<[string, HostDump, string[], Families, string]>([
    ["by name", SERVER, ["eth1"], V4, "eth1 10.0.0.1"],
    ["by address", MULTIHOMED, ["192.168.7.1"], V4, "eth0 192.168.7.1"],
    ["by IPv6 address, however it is written", SERVER, ["2001:DB8:0::1"], V6, "eth0 2001:db8::1"],
    ["by IPv4 address in dual stack", SERVER, ["192.0.2.1"], DUAL, "eth0 192.0.2.1 2001:db8::1"],
    ["by IPv6 address in dual stack", SERVER, ["2001:db8::1"], DUAL, "eth0 192.0.2.1 2001:db8::1"],
    ["the first that is there", SERVER, ["wlan0", "10.9.9.9", "eth1", "eth0"], V4, "eth1 10.0.0.1"],
    ["even a device of a container run time, since it is named", NODE, ["docker0"], V4, "docker0 172.17.0.1"],
    [
      "the next one when the first has no address",
      { ...SERVER, links: [...SERVER.links, link("eth2")] },
      ["eth2", "eth1"],
      V4,
      "eth1 10.0.0.1",
    ],
  ])("%s", (_, dump, iface, families, choice) => {
    expect(choose(dump, { iface }, families)).toBe(choice);
  });

  test("all that was tried is named, and what there is", () => {
    const decision = chooseInterface(SERVER, { iface: ["wlan0", "10.9.9.9"], ifaceRegex: ["^ens"] }, V4);
    expect("fault" in decision && decision.fault).toMatchObject({
      code: "INTERFACE_NONE",
      message:
        "no interface to reach other hosts by: --iface wlan0: there is no interface of that name; " +
        "--iface 10.9.9.9: no interface has that address; --iface-regex ^ens: it matches no address and no name",
      hint: expect.stringContaining("eth0 [192.0.2.1 2001:db8::1 fe80::1], eth1 [10.0.0.1]"),
    });
  });

  test("asked for and not found does not fall back to the default route", () => {
    expect(choose(SERVER, { iface: ["wlan0"] })).toContain("no interface");
  });
});

describe("--iface-regex", () => {
  test.each<[string, HostDump, string[], Families, string]>([
    ["matches the one of several addresses", MULTIHOMED, ["^192\\.168\\."], V4, "eth0 192.168.7.1"],
    ["matches in the middle", SERVER, ["0\\.2"], V4, "eth0 192.0.2.1"],
    ["matches a name when no address matches", SERVER, ["^eth1$"], V4, "eth1 10.0.0.1"],
    ["in Go's notation", SERVER, ["(?i)^ETH[[:digit:]]$"], V4, "eth0 192.0.2.1"],
    ["comes after --iface", SERVER, ["eth0"], V4, "eth0 192.0.2.1"],
    [
      "in dual stack needs an address of each family",
      { ...SERVER, addresses: [address("eth1", "10.0.0.1/8"), ...SERVER.addresses] },
      ["(^10\\.|^192\\.0|^2001:)"],
      DUAL,
      "eth0 192.0.2.1 2001:db8::1",
    ],
    ["takes no address of a container bridge or of ours", NODE, ["^10\\."], V4, "eth1 10.0.0.1"],
    ["takes no name of a container bridge", NODE, ["0$"], V4, "eth0 192.0.2.1"],
    ["takes the first name that has an address: lo has none", SERVER, ["o|eth1"], V4, "eth1 10.0.0.1"],
    [
      "finds a dummy device, which some use for the node's address",
      {
        ...SERVER,
        links: [...SERVER.links, link("dummy0", { type: "dummy" })],
        addresses: [...SERVER.addresses, address("dummy0", "1.10.100.1/32")],
      },
      ["dummy"],
      V4,
      "dummy0 1.10.100.1",
    ],
    ["the next pattern when the first finds nothing", SERVER, ["^ens", "^eth1"], V4, "eth1 10.0.0.1"],
  ])("%s", (_, dump, ifaceRegex, families, choice) => {
    expect(choose(dump, { ifaceRegex }, families)).toBe(choice);
  });
});

describe("--iface-can-reach", () => {
  const target = "198.51.100.7";
  test.each<[string, InterfaceWish["canReach"], Families, string]>([
    ["takes device and source of the route", { target, dev: "eth1", src: "10.0.0.1" }, V4, "eth1 10.0.0.1"],
    ["takes the device's address without a source", { target, dev: "eth1" }, V4, "eth1 10.0.0.1"],
    [
      "takes an IPv6 source as the IPv6 address",
      { target: "2001:db8:9::1", dev: "eth0", src: "2001:db8::1" },
      DUAL,
      "eth0 192.0.2.1 2001:db8::1",
    ],
  ])("%s", (_, canReach, families, choice) => {
    expect(choose(SERVER, { canReach: canReach! }, families)).toBe(choice);
  });

  test("without a route says so", () => {
    expect(choose(SERVER, { canReach: { target } })).toContain(
      `--iface-can-reach ${target}: there is no route to it`,
    );
  });
});

describe("--public-ip", () => {
  test("chooses the interface that holds it", () => {
    expect(choose(SERVER, { publicIP: "10.0.0.1" })).toBe("eth1 10.0.0.1");
    expect(choose(SERVER, { publicIPv6: "2001:db8::1" }, V6)).toBe("eth0 2001:db8::1");
  });

  test("behind NAT nobody holds it: the default route is followed and the interface's own address used", () => {
    expect(choose(SERVER, { publicIP: "203.0.113.5" })).toBe("eth0 192.0.2.1");
  });

  test("beside --iface picks that address of the interface, if it is there", () => {
    expect(choose(MULTIHOMED, { iface: ["eth0"], publicIP: "192.168.7.1" })).toBe("eth0 192.168.7.1");
    expect(choose(MULTIHOMED, { iface: ["eth0"], publicIP: "203.0.113.5" })).toBe("eth0 10.1.0.1");
    expect(choose(MULTIHOMED, { iface: ["10.1.0.1"], publicIP: "192.168.7.1" })).toBe("eth0 10.1.0.1");
  });
});
