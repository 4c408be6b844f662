import type { Families, HostFacts, WantedLink } from "flannel/sdk";
import { deriveMac } from "./mac.ts";
import type { Options } from "./options.ts";

/** Bytes of encapsulation: inner Ethernet 14 + VXLAN 8 + UDP 8 + outer IPv4 20 or IPv6 40 (RFC 7348 §5). */
const OVERHEAD = { ipv4: 50, ipv6: 70 } as const;

export type Family = keyof typeof OVERHEAD;

/** Device of a family, named as upstream names it. */
export function deviceName(family: Family, vni: number): string {
  return family === "ipv4" ? `flannel.${vni}` : `flannel-v6.${vni}`;
}

/** MTU of the underlay: the option, never more than the external interface carries. */
export function underlayMtu(options: Options, facts: HostFacts): number {
  const { mtu } = facts.external;
  return options.MTU > 0 ? Math.min(options.MTU, mtu) : mtu;
}

/** `ip link add flannel.VNI type vxlan id VNI dev EXTERNAL local ADDRESS nolearning …`, one per family. */
export function wantedDevice(family: Family, options: Options, facts: HostFacts, nodeId: string): WantedLink {
  const name = deviceName(family, options.VNI);
  const local = facts.external[family];
  return {
    name,
    type: "vxlan",
    mtu: underlayMtu(options, facts) - OVERHEAD[family],
    mac: deriveMac(nodeId, name),
    vxlan: {
      vni: options.VNI,
      underlay: facts.external.name,
      // The interface's own address, never the published one: with a NATed public IP the kernel would send nothing.
      ...(local === undefined ? {} : { local }),
      ...(options.Port > 0 ? { port: options.Port } : {}),
      learning: options.Learning,
      gbp: options.GBP,
    },
  };
}

/** The families that are on. */
export function familiesOf(families: Families): readonly Family[] {
  return (["ipv4", "ipv6"] as const).filter((family) => families[family]);
}

/** MTU for pods: the smallest of our devices, as the kernel has them where they exist already. */
export function podMtu(families: Families, options: Options, facts: HostFacts): number {
  return Math.min(
    ...familiesOf(families).map((family) => {
      const planned = underlayMtu(options, facts) - OVERHEAD[family];
      return Math.min(planned, facts.links[deviceName(family, options.VNI)]?.mtu ?? planned);
    }),
  );
}
