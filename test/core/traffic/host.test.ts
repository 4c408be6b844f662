import { describe, expect, test } from "bun:test";
import { run } from "../../../core/host/exec.ts";
import { BLACKHOLE_METRIC, blackholeRoutes } from "../../../core/traffic/blackhole.ts";
import { brNetfilterFindings } from "../../../core/traffic/bridge.ts";
import { openTrafficHost } from "../../../core/traffic/host.ts";

describe("br_netfilter", () => {
  const findings = (families: { ipv4: boolean; ipv6: boolean }, present: RegExp) =>
    brNetfilterFindings(families, (file) => present.test(file)).map(({ code, severity, text }) => {
      return [code, severity, text.split(" ")[0]];
    });

  test("is missed by a warning per family that is on", () => {
    const both = { ipv4: true, ipv6: true };
    expect(findings(both, /./)).toEqual([]);
    expect(findings(both, /^$/)).toEqual([
      ["TRAFFIC_BRIDGE_NETFILTER", "warning", "/proc/sys/net/bridge/bridge-nf-call-iptables"],
      ["TRAFFIC_BRIDGE_NETFILTER", "warning", "/proc/sys/net/bridge/bridge-nf-call-ip6tables"],
    ]);
    expect(findings({ ipv4: true, ipv6: false }, /ip6tables$/)).toHaveLength(1);
    expect(findings({ ipv4: false, ipv6: true }, /ip6tables$/)).toEqual([]);
  });
});

test("a blackhole is wanted for each own subnet, at the last metric", () => {
  expect(blackholeRoutes({})).toEqual([]);
  expect(blackholeRoutes({ ipv4: "10.5.1.0/24", ipv6: "fd00:5:1::/64" })).toEqual([
    { kind: "route", blackhole: true, dst: "10.5.1.0/24", dev: "", metric: BLACKHOLE_METRIC },
    { kind: "route", blackhole: true, dst: "fd00:5:1::/64", dev: "", metric: BLACKHOLE_METRIC },
  ]);
  expect(BLACKHOLE_METRIC >>> 24).toBe(255);
});

test("the machine of a traffic manager tells what it has", () => {
  const host = openTrafficHost(run);
  expect(host.has("sh")).toBe(true);
  expect(host.has("no-such-command")).toBe(false);
  expect(Array.isArray(host.legacyTables(4))).toBe(true);
  expect(host.generation?.read()).toBeNumber();
  host.generation?.close();
});
