import { expect, test } from "bun:test";
import type { HostDump } from "../../../../core/host/interface/candidates.ts";
import { chooseInterface } from "../../../../core/host/interface/choose.ts";
import { stillHolds } from "../../../../core/host/interface/keep.ts";
import { address, link, SERVER } from "./hosts.ts";

const decision = chooseInterface(SERVER, { iface: [], ifaceRegex: [] }, { ipv4: true, ipv6: true });
if (!("choice" in decision)) throw decision.fault;
const { choice } = decision;

const withAddresses = (...addresses: HostDump["addresses"]): HostDump => ({ ...SERVER, addresses });

test("holds as long as interface and addresses are there, whatever comes up beside it", () => {
  const vpn = { ...SERVER, links: [link("tailscale0", { type: "tun" }), ...SERVER.links], routes: [] };
  expect(stillHolds(choice, vpn)).toBe(true);
});

test.each<[string, HostDump]>([
  ["the interface is gone", { ...SERVER, links: SERVER.links.filter((each) => each.name !== "eth0") }],
  [
    "the IPv4 address is gone",
    withAddresses(address("eth0", "192.0.2.9/24"), address("eth0", "2001:db8::1/64")),
  ],
  ["the IPv6 address is gone", withAddresses(address("eth0", "192.0.2.1/24"))],
  [
    "the address is deprecated",
    withAddresses(address("eth0", "192.0.2.1/24"), address("eth0", "2001:db8::1/64", { deprecated: true })),
  ],
])("does not hold when %s", (_, dump) => {
  expect(stillHolds(choice, dump)).toBe(false);
});
