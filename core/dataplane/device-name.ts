import type { LinkState } from "../netlink/objects.ts";

/** How the devices that we make are named, by kind (IFLA_INFO_KIND); names as upstream has them. */
const OUR_DEVICES: readonly { readonly kind: string; readonly name: RegExp }[] = [
  { kind: "vxlan", name: /^flannel(-v6)?\.\d+$/ },
  { kind: "ipip", name: /^flannel\.ipip$/ },
  { kind: "wireguard", name: /^flannel-wg(-v6)?$/ },
  // A TUN device: of the udp backend, and of a WireGuard in user space.
  { kind: "tun", name: /^flannel(\d+|-wg(-v6)?)$/ },
];

/** Whether a device is named like one of ours, of whatever kind. */
export function isOurDeviceName(name: string): boolean {
  return OUR_DEVICES.some((ours) => ours.name.test(name));
}

/** Whether a device is named and made like one of ours; what lies on it tells whether it is. */
export function looksLikeOurs({ name, type }: Pick<LinkState, "name" | "type">): boolean {
  return OUR_DEVICES.some((ours) => ours.kind === type && ours.name.test(name));
}
