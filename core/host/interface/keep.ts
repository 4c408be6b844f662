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
