import { expect, test } from "bun:test";
import { composeAttrs } from "../../../core/agent/attrs.ts";
import type { ExternalInterface } from "../../../plugins/sdk/facts.ts";

const external: ExternalInterface = {
  name: "eth0",
  index: 2,
  mtu: 1500,
  ipv4: "192.0.2.1",
  ipv6: "2001:db8::1",
  publicIP: "203.0.113.5",
  publicIPv6: "2001:db8::5",
};
const identity = { nodeId: "n1", bootId: "b1" };
const data = { VNI: 1, VtepMAC: "02:00:00:00:00:01" };

test("the lease tells the published addresses, the backend's data and who we are", () => {
  expect(
    composeAttrs(
      { backendType: "vxlan", ipv4: data, ipv6: data },
      external,
      { ipv4: true, ipv6: true },
      identity,
    ),
  ).toEqual({
    backendType: "vxlan",
    publicIP: "203.0.113.5",
    publicIPv6: "2001:db8::5",
    backendData: data,
    backendV6Data: data,
    nodeId: "n1",
    bootId: "b1",
  });
});

test("a family that is off, or whose address we lack, is left out", () => {
  const published = { backendType: "host-gw" };
  expect(composeAttrs(published, external, { ipv4: true, ipv6: false }, identity)).toEqual({
    backendType: "host-gw",
    publicIP: "203.0.113.5",
    nodeId: "n1",
    bootId: "b1",
  });
  const { publicIP: _, ...ipv6Only } = external;
  expect(composeAttrs(published, ipv6Only, { ipv4: true, ipv6: true }, identity)).toEqual({
    backendType: "host-gw",
    publicIPv6: "2001:db8::5",
    nodeId: "n1",
    bootId: "b1",
  });
});
