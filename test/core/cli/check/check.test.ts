import { describe, expect, test } from "bun:test";
import { checkFirewall } from "../../../../core/cli/check/firewall.ts";
import {
  checkClock,
  checkNeighbourTable,
  checkPrivileges,
  checkSysctls,
  type HostSettings,
} from "../../../../core/cli/check/host.ts";
import type { CheckItem } from "../../../../core/cli/check/item.ts";
import { checkDevices, checkMtu, checkOverlap } from "../../../../core/cli/check/network.ts";
import { checkLease } from "../../../../core/cli/check/store.ts";
import type { AddressState, LinkState, RouteState, WantedVxlan } from "../../../../core/netlink/objects.ts";
import { parseDroppingChains } from "../../../../core/traffic/forwarding/nftables.ts";
import { stored } from "../../lease/arbitrary.ts";

const V4 = { ipv4: true, ipv6: false };
const DUAL = { ipv4: true, ipv6: true };
const codes = ({ findings }: CheckItem) => findings.map(({ code, severity }) => `${severity} ${code}`);

const GOOD: HostSettings = {
  uid: 0,
  netAdmin: true,
  now: Date.UTC(2026, 5, 1),
  synchronised: true,
  forwarding: { ipv4: "1", ipv6: "1" },
  rpFilter: 0,
  disableIpv6: "0",
  gcThresh3: { ipv4: 1024, ipv6: 1024 },
};

test("a host in order has no findings", () => {
  const items = [
    checkPrivileges(GOOD),
    checkClock(GOOD),
    checkSysctls(GOOD, DUAL, "ext0"),
    checkNeighbourTable(GOOD, DUAL, 500),
  ];
  expect(items.flatMap(codes)).toEqual([]);
});

describe("a host that is", () => {
  test.each<[string, CheckItem, string[]]>([
    ["not privileged", checkPrivileges({ ...GOOD, uid: 1000, netAdmin: false }), ["error PRIVILEGE_MISSING"]],
    ["not root's", checkPrivileges({ ...GOOD, uid: 1000 }), ["info NOT_ROOT"]],
    ["in the past", checkClock({ ...GOOD, now: 0 }), ["error CLOCK_WRONG"]],
    ["free-running", checkClock({ ...GOOD, synchronised: false }), ["info CLOCK_UNSYNCED"]],
    [
      "not forwarding",
      checkSysctls({ ...GOOD, forwarding: { ipv4: "0", ipv6: "0" } }, DUAL, "ext0"),
      ["warning FORWARDING_OFF", "warning FORWARDING_OFF"],
    ],
    ["without IPv6", checkSysctls({ ...GOOD, disableIpv6: "1" }, DUAL, "ext0"), ["error IPV6_DISABLED"]],
    ["without IPv6, which nobody wants", checkSysctls({ ...GOOD, disableIpv6: "1" }, V4, "ext0"), []],
    ["strict", checkSysctls({ ...GOOD, rpFilter: 1 }, V4, "ext0"), ["info RP_FILTER_STRICT"]],
    ["small", checkNeighbourTable(GOOD, V4, 1000), ["warning NEIGHBOUR_TABLE_SMALL"]],
  ])("%s", (_, item, found) => {
    expect(codes(item)).toEqual(found);
  });
});

const link = (name: string, change: Partial<LinkState> = {}): LinkState => ({
  ...{ name, index: 1, mtu: 1500, up: true, running: true, loopback: false },
  ...change,
});

describe("overlap", () => {
  const dump = {
    links: [link("ext0"), link("cni0", { type: "bridge" }), link("tun0")],
    addresses: [] as AddressState[],
    routes: [] as RouteState[],
  };
  const address = (dev: string, text: string) =>
    ({ dev, address: text, family: 4, scope: 0 }) as AddressState;
  const route = (dev: string, dst: string, protocol = 2) =>
    ({ dev, dst, protocol, family: 4, type: 1 }) as RouteState;
  const check = (change: Partial<typeof dump>, etcd: readonly string[] = []) =>
    codes(checkOverlap({ ipv4: "192.168.0.0/16" }, { ...dump, ...change }, etcd));

  test("an address of the host inside is an error, said once", () => {
    const inside = {
      addresses: [address("ext0", "192.168.5.20/24")],
      routes: [route("ext0", "192.168.5.0/24")],
    };
    expect(check(inside)).toEqual(["error NETWORK_OVERLAP"]);
  });

  test("a route inside is a warning; containers', ours, wider and default ones are none", () => {
    expect(check({ routes: [route("tun0", "192.168.7.0/24")] })).toEqual(["warning NETWORK_OVERLAP"]);
    const fine = [
      route("cni0", "192.168.7.0/24"),
      route("ext0", "192.168.9.0/24", 140),
      route("ext0", "0.0.0.0/0"),
      route("tun0", "192.0.0.0/8"),
    ];
    expect(check({ addresses: [address("cni0", "192.168.7.1/24")], routes: fine })).toEqual([]);
  });

  test("etcd inside is an error", () => {
    expect(check({}, ["192.168.1.1", "etcd.example"])).toEqual(["error NETWORK_OVERLAP"]);
  });
});

describe("devices", () => {
  const wanted: WantedVxlan = {
    name: "flannel.1",
    type: "vxlan",
    mtu: 1450,
    mac: "02:00:00:00:00:01",
    vxlan: { vni: 1, local: "192.0.2.1" },
  };
  const vxlan = (name: string, attrs: object) =>
    link(name, { type: "vxlan", vxlan: { vni: 1, port: 8472, local: "192.0.2.1", ...attrs } });

  test.each<[string, LinkState[], number[], string[]]>([
    ["nothing in the way", [link("ext0")], [53], []],
    ["another's VNI and port", [vxlan("vx0", {})], [8472], ["error VNI_TAKEN"]],
    ["another's VNI on another port", [vxlan("vx0", { port: 4789 })], [4789], []],
    ["another VNI on the port", [vxlan("vx0", { vni: 7 })], [8472], []],
    ["the VNI over IPv6", [vxlan("vx0", { local: "2001:db8::1" })], [8472], []],
    ["our own device", [vxlan("flannel.1", {})], [8472], []],
    ["a process on the port", [], [8472], ["error PORT_BUSY"]],
    ["our name on a bridge", [link("flannel.1", { type: "bridge" })], [], ["error DEVICE_NAME_TAKEN"]],
  ])("%s", (_, links, ports, found) => {
    expect(codes(checkDevices([wanted], links, ports))).toEqual(found);
  });

  test("MTU", () => {
    expect(codes(checkMtu(link("ext0"), 1450, V4))).toEqual([]);
    expect(codes(checkMtu(link("ext0", { mtu: 1300 }), 1230, DUAL))).toEqual(["error MTU_SMALL"]);
    expect(codes(checkMtu(link("ext0", { mtu: 1300 }), 1250, V4))).toEqual([]);
  });
});

describe("firewall", () => {
  const host = { run: async () => ({ stdout: "", stderr: "" }), has: () => true, legacyTables: () => [] };
  const wishes = {
    families: { ipv4: false, ipv6: false },
    enableNFTables: false,
    forwardRules: true,
    ipMasq: false,
    port: 8472,
  };
  const chain = (family: string, table: string, name: string, hook: string, policy = "drop") => ({
    chain: { family, table, name, hook, policy },
  });
  const json = JSON.stringify({
    nftables: [
      { metainfo: {} },
      chain("ip", "filter", "FORWARD", "forward"),
      chain("ip", "filter", "OUTPUT", "output"),
      chain("ip", "filter", "INPUT", "input", "accept"),
      chain("inet", "firewalld", "filter_FORWARD", "forward"),
      chain("ip", "filter", "INPUT2", "input"),
      chain("bridge", "lab", "x", "forward"),
    ],
  });
  const denials = parseDroppingChains(json).map((each) => ({ chain: each, networks: ["10.244.0.0/16"] }));

  test("our rules help in iptables' own chain only", () => {
    expect(codes(checkFirewall(denials, wishes, host))).toEqual([
      "info FIREWALL_FORWARD",
      "warning FIREWALL_FORWARD",
      "warning FIREWALL_INPUT",
    ]);
    const [first] = checkFirewall(denials, { ...wishes, enableNFTables: true }, host).findings;
    expect(first?.severity).toBe("warning");
    const accepted = denials.map(({ chain }) => ({ chain, networks: [] }));
    expect(codes(checkFirewall(accepted, wishes, host))).toEqual(["warning FIREWALL_INPUT"]);
  });

  test("a missing tool", () => {
    const bare = { ...host, has: () => false };
    expect(codes(checkFirewall([], wishes, bare))).toEqual(["warning TRAFFIC_TOOL_MISSING"]);
    expect(codes(checkFirewall([], { ...wishes, forwardRules: false }, bare))).toEqual([]);
  });
});

describe("the lease a node would take", () => {
  const ranges = {
    ipv4: { network: "10.3.0.0/16", subnetLen: 24, subnetMin: "10.3.1.0", subnetMax: "10.3.1.0" },
  };
  const self = { backendType: "vxlan", publicIP: "192.0.2.1", nodeId: "n-1", bootId: "b" };
  const taken = stored({ ipv4: "10.3.1.0/24" }, { publicIP: "192.0.2.2", nodeId: "n-2" });

  test("a new one, its own, none", () => {
    expect(checkLease({ leases: [], bad: [] }, self, ranges, {}).detail).toBe("would take a new subnet");
    const own = { ...taken, attrs: { ...taken.attrs, ...self } };
    expect(checkLease({ leases: [own], bad: [] }, self, ranges, {}).detail).toContain(
      "10.3.1.0-24 (by node-id)",
    );
    expect(codes(checkLease({ leases: [taken], bad: [] }, self, ranges, {}))).toEqual([
      "error LEASE_EXHAUSTED",
    ]);
    const clash = { ...taken, attrs: { ...taken.attrs, publicIP: "192.0.2.1" } };
    expect(codes(checkLease({ leases: [clash], bad: [] }, self, ranges, {}))).toEqual(["error LEASE_CLASH"]);
  });
});
