import { describe, expect, test } from "bun:test";
import {
  chooseLeftovers,
  findLeftovers,
  type LeftoverDump,
  type LeftoverScope,
  removeLeftovers,
} from "../../../core/dataplane/leftovers.ts";
import { type Prefix, parsePrefix } from "../../../core/net/prefix.ts";
import type { LinkState, RouteState } from "../../../core/netlink/objects.ts";
import { Node, peerOf, vxlanBackend } from "./node.ts";

const NETWORKS = ["10.5.0.0/16", "fd00:5::/32"].map((text) => parsePrefix(text) as Prefix);
const KNOWN: LeftoverScope = { networks: NETWORKS, shared: false };
const UNKNOWN: LeftoverScope = { networks: undefined, shared: false };

function link(name: string, type = "vxlan"): LinkState {
  return { name, index: 1, type, mtu: 1450, up: true, running: true, loopback: false };
}

function route(dst: string, change: Partial<RouteState> = {}): RouteState {
  const rest = { onlink: false, metric: 0, protocol: 140, type: 1, scope: 0, dead: false };
  return { family: dst.includes(":") ? 6 : 4, dst, ...rest, ...change };
}

function choose(dump: Partial<LeftoverDump>, scope: LeftoverScope) {
  return chooseLeftovers({ links: [], addresses: [], routes: [], nexthops: [], ...dump }, scope);
}

describe("what is ours", () => {
  test("a device with an address of our networks, whatever its VNI", () => {
    const links = [link("flannel.1"), link("flannel-v6.7"), link("flannel.2"), link("vxlan9")];
    const addresses = [
      { dev: "flannel.1", address: "10.5.3.0/32", scope: 0 },
      { dev: "flannel-v6.7", address: "fd00:5:3::/128", scope: 0 },
      { dev: "flannel.2", address: "10.6.3.0/32", scope: 0 },
      { dev: "vxlan9", address: "10.5.4.0/32", scope: 0 },
    ];
    expect(choose({ links, addresses }, KNOWN).devices).toEqual(["flannel.1", "flannel-v6.7"]);
    expect(choose({ links, addresses }, UNKNOWN).devices).toEqual([]);
  });

  test("a device of any of our backends, but not one of another kind with its name", () => {
    const kinds = [
      ["flannel.ipip", "ipip"],
      ["flannel-wg", "wireguard"],
      ["flannel-wg-v6", "wireguard"],
      ["flannel-wg", "tun"],
      ["flannel0", "tun"],
    ] as const;
    for (const [dev, kind] of kinds) {
      const addresses = [{ dev, address: "10.5.3.0/32", scope: 0 }];
      const routes = [route("10.5.0.0/16", { dev })];
      expect(choose({ links: [link(dev, kind)], addresses }, KNOWN).devices).toEqual([dev]);
      expect(choose({ links: [link(dev, kind)], routes }, UNKNOWN)).toEqual({ devices: [dev], objects: [] });
      expect(choose({ links: [link(dev, "bridge")], addresses }, KNOWN).devices).toEqual([]);
    }
  });

  test("a device without address is a start that was cut off, unless another daemon may be about to use it", () => {
    const links = [link("flannel.1")];
    const addresses = [{ dev: "flannel.1", address: "fe80::1/64", scope: 253 }];
    expect(choose({ links, addresses }, KNOWN).devices).toEqual(["flannel.1"]);
    expect(choose({ links, addresses }, { ...KNOWN, shared: true }).devices).toEqual([]);
    expect(choose({ links, addresses }, UNKNOWN).devices).toEqual([]);
    expect(choose({ links: [link("flannel.1", "bridge")], addresses }, KNOWN).devices).toEqual([]);
  });

  test("a device that our routes lead over, also where nothing tells the networks", () => {
    const links = [link("flannel.1")];
    const routes = [route("10.5.9.0/24", { dev: "flannel.1" })];
    expect(choose({ links, routes }, UNKNOWN)).toEqual({ devices: ["flannel.1"], objects: [] });
  });

  test("routes and nexthops with our mark in our networks, but for those that go with a device", () => {
    const routes = [
      route("10.5.9.0/24", { dev: "ext0", via: "192.0.2.9" }),
      route("10.6.9.0/24", { dev: "ext0", via: "192.0.2.9" }),
      route("10.5.1.0/24", { type: 6, metric: 7 }),
    ];
    const nexthops = [
      { id: 0x0a050900, dev: "ext0", via: "192.0.2.9", onlink: false, protocol: 140 },
      { id: 0x0a060900, dev: "ext0", via: "192.0.2.9", onlink: false, protocol: 140 },
    ];
    expect(choose({ routes, nexthops }, KNOWN).objects).toEqual([
      { kind: "route", dst: "10.5.9.0/24", dev: "ext0", via: "192.0.2.9" },
      { kind: "route", blackhole: true, dst: "10.5.1.0/24", dev: "", metric: 7 },
      { kind: "nexthop", id: 0x0a050900, dev: "ext0", via: "192.0.2.9" },
    ]);
    expect(choose({ routes, nexthops }, UNKNOWN).objects).toHaveLength(5);
  });
});

/** The state of a node, without what the kernel counts, and whether it has checked its addresses yet. */
async function dump(node: Node): Promise<string> {
  const commands = ["ip -d link", "ip address", "ip route", "ip -6 route", "ip nexthop", "bridge fdb"];
  return (await node.ns.exec("sh", "-ec", commands.join("\n"))).replaceAll(" tentative", "");
}

test.each([
  ["tunnels", {}],
  ["direct routes", { DirectRouting: true }],
])(
  "a node with %s is as before its first start afterwards, and a second time nothing is found",
  async (_, options) => {
    await using node = await Node.create("leftovers");
    const before = await dump(node);
    await using drive = await node.drive(vxlanBackend(options));
    await drive.start(peerOf(2), peerOf(3));
    await drive.stop();
    await node.ns.ip("route add 10.5.200.0/24 via 192.0.2.200 dev eth0");
    const found = await findLeftovers(node.kernel, KNOWN);
    expect(found.devices).toEqual(["flannel.1", "flannel-v6.1"]);
    await removeLeftovers(node.kernel, found);
    expect(await findLeftovers(node.kernel, KNOWN)).toEqual({ devices: [], objects: [] });
    // What is not ours stays.
    await node.ns.ip("route delete 10.5.200.0/24");
    expect(await dump(node)).toBe(before);
    await removeLeftovers(node.kernel, found);
  },
);
