import type { HostDump } from "../../../../core/host/interface/candidates.ts";
import type { AddressState, LinkState, RouteState } from "../../../../core/netlink/objects.ts";

/** A link for a fake dump, physical unless a kind is given. */
export function link(name: string, state: Partial<LinkState> = {}): LinkState {
  const loopback = name === "lo";
  return { name, index: 1, mtu: 1500, up: true, running: true, loopback, mac: "02:00:00:00:00:01", ...state };
}

/** An address for a fake dump, in CIDR text: permanent and global unless said otherwise. */
export function address(dev: string, text: string, state: Partial<AddressState> = {}): AddressState {
  const family = text.includes(":") ? 6 : 4;
  const scope = /^(fe80|169\.254)/.test(text) ? 253 : 0;
  const flags = { deprecated: false, temporary: false, tentative: false, permanent: true };
  return { dev, family, address: text, scope, ...flags, ...state };
}

/** A default route of the family of its gateway. */
export function defaultRoute(dev: string, via: string, state: Partial<RouteState> = {}): RouteState {
  const family = via.includes(":") ? 6 : 4;
  const dst = family === 6 ? "::/0" : "0.0.0.0/0";
  return {
    family,
    dst,
    dev,
    via,
    onlink: false,
    metric: 0,
    protocol: 3,
    type: 1,
    scope: 0,
    dead: false,
    ...state,
  };
}

/** One leg per device and no device of its own, as `ip route add default nexthop … nexthop …` makes it. */
export function multipathDefault(...devs: string[]): RouteState {
  const { dev: _, via: __, ...route } = defaultRoute("", "192.0.2.254");
  return { ...route, hops: devs.map((dev) => ({ dev, via: "192.0.2.254" })) };
}

/** A machine: loopback, `eth0` (192.0.2.1, 2001:db8::1, default routes) and `eth1` (10.0.0.1). */
export const SERVER: HostDump = {
  links: [link("lo", { mtu: 65_536 }), link("eth0", { index: 2 }), link("eth1", { index: 3 })],
  addresses: [
    address("lo", "127.0.0.1/8", { scope: 254 }),
    address("lo", "::1/128", { scope: 254 }),
    address("eth0", "fe80::1/64"),
    address("eth0", "192.0.2.1/24"),
    address("eth0", "2001:db8::1/64"),
    address("eth1", "10.0.0.1/8"),
  ],
  routes: [defaultRoute("eth0", "192.0.2.254"), defaultRoute("eth0", "fe80::fe", { metric: 1024 })],
};

/** The same machine after a container run time and we moved in. */
export const NODE: HostDump = {
  links: [
    ...SERVER.links,
    link("flannel.1", { index: 4, type: "vxlan" }),
    link("cni0", { index: 5, type: "bridge" }),
    link("docker0", { index: 6, type: "bridge" }),
    link("veth1a2b3c", { index: 7, type: "veth" }),
  ],
  addresses: [
    ...SERVER.addresses,
    address("flannel.1", "10.5.1.0/32"),
    address("cni0", "10.5.1.1/24"),
    address("docker0", "172.17.0.1/16"),
  ],
  routes: SERVER.routes,
};
