import type { DeclarativeBackend, HostFacts, LinkState, Peer } from "flannel/sdk";
import vxlan from "../../backends/vxlan/index.ts";
import type { Options } from "../../backends/vxlan/options.ts";

/** A vxlan device as the kernel has it. */
export function device(name: string, mac: string, mtu = 1450): LinkState {
  return { name, index: 9, type: "vxlan", mtu, mac, up: true, running: true, loopback: false };
}

/** A host on 192.0.2.0/24 and fd00:db8::/64. */
export const FACTS: HostFacts = {
  external: {
    name: "ext0",
    index: 2,
    mtu: 1500,
    ipv4: "192.0.2.1",
    ipv6: "fd00:db8::1",
    publicIP: "192.0.2.1",
    publicIPv6: "fd00:db8::1",
  },
  links: {},
  routes: [
    { dst: "0.0.0.0/0", dev: "ext0", via: "192.0.2.254" },
    { dst: "192.0.2.0/24", dev: "ext0" },
    { dst: "fd00:db8::/64", dev: "ext0" },
  ],
};

/** Defaults of the vxlan backend, as upstream has them. */
export const DEFAULTS: Options = {
  VNI: 1,
  Port: 0,
  MTU: 0,
  GBP: false,
  Learning: false,
  DirectRouting: false,
  MembersOnly: false,
  ChecksumOffload: "auto",
};

/** A configured vxlan backend. */
export function vxlanWith(
  options: Partial<Options> = {},
  families = { ipv4: true, ipv6: true },
): DeclarativeBackend {
  const backend = vxlan.configure({
    options: { ...DEFAULTS, ...options },
    families,
    networks: {},
    nodeId: "n1",
  });
  if (backend.mode !== "declarative") throw new Error("vxlan is declarative");
  return backend;
}

/** The second host of the captured upstream run (dual stack, VNI 5). */
export const GOLDEN_PEER: Peer = {
  key: "10.244.2.0-24&fd00:10:244:25::-64",
  backendType: "vxlan",
  ipv4: { subnet: "10.244.2.0/24", publicIP: "192.0.2.2", data: { VNI: 5, VtepMAC: "9a:79:64:f1:18:b6" } },
  ipv6: {
    subnet: "fd00:10:244:25::/64",
    publicIP: "fd00:db8::2",
    data: { VNI: 5, VtepMAC: "fa:34:c4:fb:6f:b0" },
  },
};
