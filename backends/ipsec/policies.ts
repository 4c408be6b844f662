import type { XfrmChange, XfrmPolicy, XfrmPolicyState } from "flannel/sdk";
import { type FarEnd, type OwnEnd, REQID } from "./tunnel.ts";

/** The policies of one tunnel: what leaves goes into it, what arrives for us or to be forwarded came out of it. */
export function policiesFor(own: OwnEnd, far: FarEnd): readonly XfrmPolicy[] {
  const back = {
    src: far.subnet,
    dst: own.subnet,
    tunnel: { src: far.address, dst: own.address, reqid: REQID },
  };
  return [
    {
      src: own.subnet,
      dst: far.subnet,
      direction: "out",
      tunnel: { src: own.address, dst: far.address, reqid: REQID },
    },
    { ...back, direction: "in" },
    { ...back, direction: "fwd" },
  ];
}

/** Whether a policy is one of ours: our reqid, and an end in the cluster network: a lease may lie outside of it. */
export function isOurs(
  { src, dst, tunnel }: XfrmPolicyState,
  isInNetwork: (cidr: string) => boolean,
): boolean {
  return tunnel?.reqid === REQID && (isInNetwork(src) || isInNetwork(dst));
}

/**
 * What makes the kernel's policies the wanted ones: first those that are missing or different, then those of ours that
 * nobody wants any more.
 */
export function planPolicies(
  actual: readonly XfrmPolicyState[],
  wanted: readonly XfrmPolicy[],
  isInNetwork: (cidr: string) => boolean,
): readonly XfrmChange[] {
  const there = new Map(actual.map((policy) => [identityOf(policy), policy]));
  const asked = new Set(wanted.map(identityOf));
  const puts = wanted.filter((policy) => !isSame(there.get(identityOf(policy)), policy));
  const stale = actual.filter((policy) => !asked.has(identityOf(policy)) && isOurs(policy, isInNetwork));
  return [
    ...puts.map((policy): XfrmChange => ({ action: "put", policy })),
    ...stale.map(
      ({ src, dst, direction }): XfrmChange => ({ action: "delete", policy: { src, dst, direction } }),
    ),
  ];
}

function identityOf({ src, dst, direction }: Pick<XfrmPolicy, "src" | "dst" | "direction">): string {
  return `${direction} ${src} ${dst}`;
}

function isSame(actual: XfrmPolicyState | undefined, { tunnel }: XfrmPolicy): boolean {
  return (
    actual?.tunnel?.src === tunnel.src &&
    actual.tunnel.dst === tunnel.dst &&
    actual.tunnel.reqid === tunnel.reqid
  );
}
