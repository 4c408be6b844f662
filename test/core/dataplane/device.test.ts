import { describe, expect, test } from "bun:test";
import { findStaleDevices, planDevice } from "../../../core/dataplane/device.ts";
import type { LinkState, VxlanAttrs, WantedIpip, WantedVxlan } from "../../../core/netlink/objects.ts";

const vxlan: VxlanAttrs = {
  vni: 1,
  underlay: "eth0",
  local: "192.0.2.1",
  port: 8472,
  learning: false,
  gbp: false,
};
const wanted: WantedVxlan = { name: "flannel.1", type: "vxlan", mtu: 1450, mac: "02:00:00:00:00:01", vxlan };
const actual: LinkState = {
  name: "flannel.1",
  index: 7,
  type: "vxlan",
  mtu: 1450,
  mac: "76:af:5e:12:2e:67",
  up: true,
  running: true,
  loopback: false,
  vxlan: { ...vxlan, l2miss: false },
};

test("a missing device is created", () => {
  expect(planDevice(wanted, undefined)).toEqual({ action: "create" });
});

describe("a device that fits is adopted, with its MAC", () => {
  test.each<[string, Partial<WantedVxlan>, Partial<LinkState>, { mtu?: number; raise: boolean }]>([
    ["as it is", {}, {}, { raise: false }],
    ["with another MAC", {}, { mac: "02:00:00:00:00:99" }, { raise: false }],
    ["with another MTU, which is set", {}, { mtu: 1500 }, { mtu: 1450, raise: false }],
    ["that is down, which is raised", {}, { up: false, running: false }, { raise: true }],
    ["with both", {}, { mtu: 1400, up: false }, { mtu: 1450, raise: true }],
    [
      "whose port is left to the kernel",
      { vxlan: { vni: 1, underlay: "eth0", local: "192.0.2.1" } },
      {},
      { raise: false },
    ],
    ["that has a group nobody asked for", {}, { vxlan: { ...vxlan, group: "239.1.1.1" } }, { raise: false }],
    ["without a local address", {}, { vxlan: { vni: 1, underlay: "eth0", port: 8472 } }, { raise: false }],
    ["where we know no local address", { vxlan: { vni: 1, underlay: "eth0" } }, {}, { raise: false }],
  ])("%s", (_, change, state, plan) => {
    expect(planDevice({ ...wanted, ...change }, { ...actual, ...state })).toEqual({
      action: "adopt",
      ...plan,
    });
  });
});

describe("a device that differs is made anew, with the MAC its peers know", () => {
  test.each<[string, Partial<VxlanAttrs>, Partial<VxlanAttrs>, string]>([
    ["VNI", { vni: 2 }, {}, "VNI 1, wanted 2"],
    ["underlay", { underlay: "eth1" }, {}, "underlay eth0, wanted eth1"],
    ["local address", { local: "192.0.2.9" }, {}, "local 192.0.2.1, wanted 192.0.2.9"],
    ["group", { group: "239.1.1.2" }, { group: "239.1.1.1" }, "group 239.1.1.1, wanted 239.1.1.2"],
    ["port", { port: 4789 }, {}, "port 8472, wanted 4789"],
    ["l2miss", {}, { l2miss: true }, "l2miss true, wanted false"],
    ["GBP", { gbp: true }, {}, "gbp false, wanted true"],
    ["learning", {}, { learning: true }, "learning true, wanted false"],
  ])("%s", (_, want, has, difference) => {
    expect(
      planDevice({ ...wanted, vxlan: { ...vxlan, ...want } }, { ...actual, vxlan: { ...vxlan, ...has } }),
    ).toEqual({ action: "recreate", differences: [difference], mac: "76:af:5e:12:2e:67" });
  });

  test("all differences are named at once", () => {
    const plan = planDevice({ ...wanted, vxlan: { ...vxlan, vni: 2, port: 4789, gbp: true } }, actual);
    expect(plan.action === "recreate" && plan.differences.length).toBe(3);
  });

  test("a device of another kind does not hand its MAC on", () => {
    const { vxlan: _, ...bridge } = { ...actual, type: "bridge" };
    expect(planDevice(wanted, bridge)).toEqual({
      action: "recreate",
      differences: ["kind bridge, wanted vxlan"],
    });
    const { type: __, ...physical } = bridge;
    expect(planDevice(wanted, physical)).toEqual({
      action: "recreate",
      differences: ["kind none, wanted vxlan"],
    });
  });
});

describe("devices left by an earlier configuration", () => {
  const link = (name: string, type = "vxlan"): LinkState => ({ ...actual, name, type });
  const links = [link("flannel.1"), link("flannel.2"), link("flannel-v6.1"), link("eth0", "veth")];

  test("are those of ours that nobody wants and that hold an address of our networks", () => {
    const inOurs = new Set(["flannel.1", "flannel.2", "flannel-v6.1", "eth0"]);
    expect(findStaleDevices(links, new Set(["flannel.1"]), inOurs)).toEqual(["flannel.2", "flannel-v6.1"]);
  });

  test("another daemon's device holds none and is left", () => {
    expect(findStaleDevices(links, new Set(["flannel.1"]), new Set(["flannel.1"]))).toEqual([]);
  });

  test.each([
    ["a bridge of that name", link("flannel.2", "bridge")],
    ["somebody's vxlan", link("vxlan.calico")],
    ["a name that only begins like ours", link("flannel.2x")],
    ["a name that only ends like ours", link("my-flannel.2")],
    ["a dummy named as the wireguard backend's", link("flannel-wg", "dummy")],
  ])("%s is left", (_, stranger) => {
    expect(findStaleDevices([stranger], new Set(), new Set([stranger.name]))).toEqual([]);
  });
});

describe("an ipip device", () => {
  const tunnel: WantedIpip = {
    name: "flannel.ipip",
    type: "ipip",
    mtu: 1480,
    ipip: { local: "192.0.2.1", ttl: 0, pmtudisc: false },
  };
  const there: LinkState = {
    name: "flannel.ipip",
    index: 8,
    type: "ipip",
    mtu: 1480,
    up: true,
    running: true,
    loopback: false,
    ipip: { local: "192.0.2.1", ttl: 0, pmtudisc: false },
  };

  test.each<[string, Partial<LinkState>, { mtu?: number; raise: boolean }]>([
    ["as it is", {}, { raise: false }],
    ["with the operator's lower MTU, which stays", { mtu: 1400 }, { raise: false }],
    ["with a higher MTU, which is set", { mtu: 1500 }, { mtu: 1480, raise: false }],
    ["without an MTU, which is set", { mtu: 0 }, { mtu: 1480, raise: false }],
    ["that is down, which is raised", { up: false }, { raise: true }],
    [
      "with another TTL and PMTU discovery",
      { ipip: { local: "192.0.2.1", ttl: 64, pmtudisc: true } },
      { raise: false },
    ],
  ])("is adopted %s", (_, change, plan) => {
    expect(planDevice(tunnel, { ...there, ...change })).toEqual({ action: "adopt", ...plan });
  });

  test("with the MTU that was wanted until now, which nobody else gave it, gets the new one", () => {
    const lower = { ...there, mtu: 1380 };
    expect(planDevice(tunnel, lower, 1380)).toEqual({ action: "adopt", mtu: 1480, raise: false });
    expect(planDevice(tunnel, lower, 1400)).toEqual({ action: "adopt", raise: false });
  });

  test.each<[string, LinkState["ipip"], readonly string[]]>([
    ["no local address", {}, ["local any, wanted 192.0.2.1"]],
    ["another local address", { local: "192.0.2.9" }, ["local 192.0.2.9, wanted 192.0.2.1"]],
    ["a far end", { local: "192.0.2.1", remote: "192.0.2.2" }, ["remote 192.0.2.2, wanted any"]],
    ["attributes that cannot be read", undefined, ["its ipip attributes cannot be read"]],
  ])("with %s is made anew", (_, ipip, differences) => {
    const { ipip: __, ...bare } = there;
    expect(planDevice(tunnel, { ...bare, ...(ipip ? { ipip } : {}) })).toEqual({
      action: "recreate",
      differences,
    });
  });

  test("of another kind is a stranger's", () => {
    expect(planDevice(tunnel, { ...there, type: "dummy" })).toEqual({ action: "refuse", kind: "dummy" });
    const { type: _, ...card } = there;
    expect(planDevice(tunnel, card)).toEqual({ action: "refuse", kind: "physical" });
  });
});
