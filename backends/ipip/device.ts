import type { Finding, HostFacts, WantedLink } from "flannel/sdk";

/** Name of the tunnel, as upstream has it. The kernel's own `tunl0` is another device, and stays as it is. */
export const DEVICE = "flannel.ipip";

/** Bytes of encapsulation: the outer IPv4 header without options (RFC 2003 §3.1). */
const OVERHEAD = 20;

/** Smallest MTU an IPv4 device may have (RFC 791 §3.2; ETH_MIN_MTU). */
const MIN_MTU = 68;

/** MTU of the device when it is made. */
export function tunnelMtu({ external }: HostFacts): number {
  return external.mtu - OVERHEAD;
}

/** MTU for pods: that of the device as the kernel has it, which an operator may have lowered. */
export function podMtu(facts: HostFacts): number {
  const planned = tunnelMtu(facts);
  return Math.min(planned, facts.links[DEVICE]?.mtu ?? planned);
}

/** `ip link add flannel.ipip mtu MTU type ipip local ADDRESS remote any ttl inherit nopmtudisc` */
export function wantedDevice(facts: HostFacts): WantedLink {
  const { ipv4 } = facts.external;
  return {
    name: DEVICE,
    type: "ipip",
    mtu: tunnelMtu(facts),
    ipip: {
      // The interface's own address, never the published one: with a NATed public IP the kernel would send nothing.
      ...(ipv4 === undefined ? {} : { local: ipv4 }),
      ttl: 0,
      pmtudisc: false,
    },
  };
}

/** An interface that cannot carry the smallest packet in the tunnel. */
export function findSmallMtu(facts: HostFacts): readonly Finding[] {
  const mtu = tunnelMtu(facts);
  if (mtu >= MIN_MTU) return [];
  const { name, mtu: underlay } = facts.external;
  return [
    {
      code: "IPIP_MTU",
      severity: "error",
      title: "the interface carries too little for a tunnel",
      text: `${name} has MTU ${underlay}; ${mtu} would be left inside of the tunnel, and IPv4 needs ${MIN_MTU}`,
      fix: `Raise the MTU of ${name}, or choose another interface by --iface.`,
    },
  ];
}
