import type { Prefix } from "../net/prefix.ts";
import type { Kernel } from "../netlink/kernel.ts";
import type { XfrmPolicyState, XfrmState } from "../netlink/xfrm-objects.ts";
import { Fault } from "../observe/fault.ts";
import type { Log } from "../observe/log.ts";
import { liesIn } from "./actual.ts";

/** What ties IPsec policies of ours to their states; the number upstream's ipsec backend uses too. */
export const XFRM_REQID = 11;
/** The device on which the ipsec backend keeps the host's address in its subnet. */
const LOOPBACK = "lo";

/** Policies of ours: our reqid, both ends in the cluster's networks. Pure. */
export function findStalePolicies(
  policies: readonly XfrmPolicyState[],
  networks: readonly Prefix[],
): readonly XfrmPolicyState[] {
  return policies.filter(
    ({ src, dst, tunnel }) => tunnel?.reqid === XFRM_REQID && liesIn(src, networks) && liesIn(dst, networks),
  );
}

/** States that carry what these policies send, or send here. Pure. */
export function findStatesOf(
  states: readonly XfrmState[],
  policies: readonly XfrmPolicyState[],
): readonly XfrmState[] {
  const tunnels = new Set(policies.flatMap(({ tunnel }) => (tunnel ? [`${tunnel.src} ${tunnel.dst}`] : [])));
  return states.filter(
    ({ src, dst, reqid, mode }) => reqid === XFRM_REQID && mode === "tunnel" && tunnels.has(`${src} ${dst}`),
  );
}

/** Where something of the ipsec backend may lie. */
export interface PolicyScope {
  /** Networks now and of the last run. */
  readonly networks: readonly Prefix[];
  /** The own subnet as CIDR text, if there is an IPv4 one. */
  readonly subnet: string | undefined;
}

/**
 * `ip xfrm policy delete`, `ip xfrm state delete`, `ip address delete SUBNET-BASE/32 dev lo`: removes what the ipsec
 * backend left in our networks, for a backend without IPsec: a policy takes packets whatever the routes say. Says how
 * many. Nothing where the kernel has no IPsec.
 */
export async function removeStalePolicies(
  kernel: Kernel,
  { networks, subnet }: PolicyScope,
  log: Log,
): Promise<void> {
  const policies = findStalePolicies(await listPolicies(kernel), networks);
  const bases = new Set([subnet ?? "", ...policies.map(({ src }) => src)].map(hostAddress));
  const addresses = (await kernel.addresses(LOOPBACK)).filter(({ address }) => bases.has(address));
  await kernel.apply(
    addresses.map(({ address }) => ({
      action: "delete",
      object: { kind: "address", dev: LOOPBACK, address },
    })),
  );
  if (policies.length === 0) return;
  const states = findStatesOf(await kernel.xfrmStates(), policies);
  const failures = await kernel.applyXfrm([
    ...policies.map((policy) => ({ action: "delete", policy }) as const),
    ...states.map((state) => ({ action: "delete", state }) as const),
  ]);
  const numbers = { policies: policies.length, states: states.length };
  const [failure] = failures;
  if (failure) {
    log.warn(`cannot remove all IPsec policies left by an earlier configuration: ${failure.text}`, numbers);
  } else log.info("removed IPsec policies, left by an earlier configuration", numbers);
}

async function listPolicies(kernel: Kernel): Promise<readonly XfrmPolicyState[]> {
  try {
    return await kernel.xfrmPolicies();
  } catch (error) {
    if (error instanceof Fault && error.code === "XFRM_UNAVAILABLE") return [];
    throw error;
  }
}

/** `10.244.7.0/24` → `10.244.7.0/32`. */
function hostAddress(cidr: string): string {
  return `${cidr.split("/")[0]}/32`;
}
