import { expect, test } from "bun:test";
import { type ConfigChange, compareConfigs } from "../../../core/agent/config-change.ts";
import { readNetworkConfig } from "../../../core/config/network.ts";

const BASE = { Network: "10.5.0.0/16", SubnetMin: "10.5.1.0", Backend: { Type: "vxlan", VNI: 1 } };
const DUAL = { ...BASE, EnableIPv6: true, IPv6Network: "fd00:5::/48" };

/** What it means for a node that leads 10.5.7.0/24 when `before` becomes `after`. */
function compare(before: object, after: object, declarative = true): ConfigChange {
  const [one, other] = [before, after].map((config) => {
    const { Type: _, ...options } = (config as typeof BASE).Backend;
    return { config: readNetworkConfig(JSON.stringify(config), "config").config, options };
  });
  if (!one || !other) throw new Error("two configs");
  const ipv6 = "EnableIPv6" in before ? { ipv6: "fd00:5:0:7::/64" } : {};
  return compareConfigs(one, other, { subnets: { ipv4: "10.5.7.0/24", ...ipv6 }, declarative });
}

test("the same config, written differently, changes nothing", () => {
  expect(compare(BASE, { backend: BASE.Backend, ...BASE, SubnetLen: 24, Note: "new" })).toEqual({
    live: [],
    restart: [],
    rulesOnly: false,
  });
});

test.each<[string, object, object, string]>([
  ["another network", BASE, { ...BASE, Network: "10.6.0.0/16", SubnetMin: "10.6.1.0" }, "Network"],
  ["another subnet size", BASE, { ...BASE, SubnetLen: 25 }, "SubnetLen"],
  ["another backend", BASE, { ...BASE, Backend: { Type: "host-gw" } }, "Backend.Type"],
  ["IPv6 switched on", BASE, DUAL, "EnableIPv6"],
  ["IPv6 switched off", DUAL, BASE, "EnableIPv6"],
  ["another IPv6 network", DUAL, { ...DUAL, IPv6Network: "fd00:6::/48" }, "IPv6Network"],
  ["a range without the own subnet", BASE, { ...BASE, SubnetMin: "10.5.8.0" }, "SubnetMin/SubnetMax"],
])("%s waits for a restart", (_, before, after, key) => {
  const { live, restart } = compare(before, after);
  expect(restart).toContain(key);
  expect(live).toEqual([]);
});

test.each<[string, object, string]>([
  ["a range that still holds the own subnet", { ...BASE, SubnetMin: "10.5.2.0" }, "SubnetMin/SubnetMax"],
  ["another option of the backend", { ...BASE, Backend: { Type: "vxlan", VNI: 7 } }, "Backend.VNI"],
  ["one more option", { ...BASE, Backend: { Type: "vxlan", VNI: 1, MTU: 1400 } }, "Backend.MTU"],
  ["one option less", { ...BASE, Backend: { Type: "vxlan" } }, "Backend.VNI"],
  ["the firewall in use", { ...BASE, EnableNFTables: true }, "EnableNFTables"],
])("%s is taken over while running", (_, after, key) => {
  expect(compare(BASE, after)).toMatchObject({
    live: [key],
    restart: [],
    rulesOnly: key === "EnableNFTables",
  });
});

test("a backend that moves packets itself takes new options with a restart only", () => {
  const after = { ...BASE, Backend: { Type: "vxlan", VNI: 7 } };
  expect(compare(BASE, after, false)).toMatchObject({ live: [], restart: ["Backend.VNI"], rulesOnly: false });
});

test("rules beside anything else are no change of rules alone", () => {
  const after = { ...BASE, EnableNFTables: true, Backend: { Type: "vxlan", VNI: 7 } };
  expect(compare(BASE, after)).toMatchObject({ live: ["Backend.VNI", "EnableNFTables"], rulesOnly: false });
});
