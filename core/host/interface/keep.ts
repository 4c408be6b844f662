import { type HostDump, listCandidates } from "./candidates.ts";
import type { InterfaceChoice } from "./choose.ts";

/**
 * Whether an earlier choice still holds: the interface is there with the same addresses. As long as it does nothing
 * else is chosen, however good it looks: an overlay must not move to a VPN that came up later.
 */
export function stillHolds(choice: InterfaceChoice, dump: HostDump): boolean {
  const now = listCandidates(dump).find((one) => one.link.name === choice.candidate.link.name);
  if (!now || now.link.mtu === 0) return false;
  const has = (addresses: readonly string[], address: string | undefined) =>
    address === undefined || addresses.includes(address);
  return has(now.ipv4, choice.ipv4) && has(now.ipv6, choice.ipv6);
}

/**
 * Whether a move from one choice to another would give up an address that other links can reach for one that only
 * this link can (169.254.0.0/16, fe80::/10). Such a host has lost its address for the moment: others could not use
 * the new one, and it would look fine for ever.
 */
export function isDowngrade(from: InterfaceChoice, to: InterfaceChoice): boolean {
  return (["ipv4", "ipv6"] as const).some(
    (family) => from[family] !== undefined && !isLinkLocal(from[family]) && isLinkLocal(to[family]),
  );
}

/** Whether the interface in use got an address that others can reach, after a start with a link-local one. */
export function isUpgrade(from: InterfaceChoice, to: InterfaceChoice): boolean {
  return from.candidate.link.name === to.candidate.link.name && isDowngrade(to, from);
}

function isLinkLocal(address: string | undefined): boolean {
  return address !== undefined && /^(169\.254\.|fe[89ab])/i.test(address);
}
