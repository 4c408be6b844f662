import { parseIPv6 } from "../../net/ipv6.ts";
import type { AddressState, LinkState, RouteState } from "../../netlink/objects.ts";

/** What the choice is made from: dumps of the host, plain data. */
export interface HostDump {
  readonly links: readonly LinkState[];
  readonly addresses: readonly AddressState[];
  /** Main-table routes of both families. */
  readonly routes: readonly RouteState[];
}

/** A link with its usable addresses, best first, without prefix length. */
export interface Candidate {
  readonly link: LinkState;
  readonly ipv4: readonly string[];
  readonly ipv6: readonly string[];
}

/** Scope of link-local addresses (RT_SCOPE_LINK, linux/rtnetlink.h). */
const SCOPE_LINK = 253;

/** Names and kinds of devices that we or a container runtime made: they never lead to other hosts. */
const INNER_NAMES = /^(flannel[.-]|flannel\d|cni\d|docker\d|veth|cali|lxc|kube-ipvs|nodelocaldns)/;

/** Whether a device was made by an overlay or a container runtime. */
export function isInner(link: LinkState): boolean {
  return INNER_NAMES.test(link.name) && link.type !== undefined;
}

/**
 * All links with their usable addresses in upstream's order: not deprecated, global or link-local unicast; global
 * before link-local, permanent before dynamic, lasting before temporary, else as the kernel lists them.
 */
export function listCandidates(dump: HostDump): readonly Candidate[] {
  const byDevice = new Map<string, AddressState[]>();
  for (const address of dump.addresses) {
    if (!isUsable(address)) continue;
    const list = byDevice.get(address.dev);
    if (list) list.push(address);
    else byDevice.set(address.dev, [address]);
  }
  return dump.links.map((link) => {
    const addresses = (byDevice.get(link.name) ?? []).toSorted(compareAddresses);
    return { link, ipv4: addressesOf(addresses, 4), ipv6: addressesOf(addresses, 6) };
  });
}

function addressesOf(addresses: readonly AddressState[], family: 4 | 6): readonly string[] {
  return addresses
    .filter((address) => address.family === family)
    .map((address) => withoutLength(address.address));
}

/** The address part of CIDR text. */
export function withoutLength(cidr: string): string {
  const slash = cidr.indexOf("/");
  return slash < 0 ? cidr : cidr.slice(0, slash);
}

function isUsable(address: AddressState): boolean {
  if (address.deprecated) return false;
  const text = withoutLength(address.address);
  if (address.family === 4) return !text.startsWith("127.") && text !== "0.0.0.0";
  const value = parseIPv6(text);
  return value !== undefined && value > 1n && value >> 120n !== 0xffn;
}

function compareAddresses(a: AddressState, b: AddressState): number {
  return rank(a) - rank(b);
}

function rank(address: AddressState): number {
  const linkLocal = address.scope === SCOPE_LINK || /^(169\.254\.|fe[89ab])/i.test(address.address);
  return (linkLocal ? 4 : 0) + (address.permanent ? 0 : 2) + (address.temporary ? 1 : 0);
}
