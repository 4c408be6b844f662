import type { LeaseAttrs } from "./lease.ts";

/**
 * How the owner of a lease relates to this node:
 * - `node-id`: our node id, whatever the address;
 * - `public-ip`: our address and no node id, as upstream writes it;
 * - `new-interface`: our address and machine under an earlier boot, the interface differs: we, after a repair;
 * - `clash`: our address under another node's id;
 * - `other`: somebody else.
 */
export type Relation = "node-id" | "public-ip" | "new-interface" | "clash" | "other";

/** A node id as core/host derives it: hash of the machine, hash of the interface. Operators may set other ids. */
const DERIVED_ID = /^([0-9a-f]{8,})-[0-9a-f]{8,}$/;

/** Relates the owner of a stored value to this node. The IPv4 address decides; IPv6 only where we have no IPv4. */
export function relate(owner: LeaseAttrs, self: LeaseAttrs): Relation {
  if (self.nodeId !== undefined && owner.nodeId === self.nodeId) return "node-id";
  if (!sharesAddress(owner, self)) return "other";
  if (owner.nodeId === undefined || self.nodeId === undefined) return "public-ip";
  return isEarlierBoot(owner, self) ? "new-interface" : "clash";
}

/** Whether both values carry one and the same address: IPv4, or IPv6 where `self` has no IPv4. */
export function sharesAddress(owner: LeaseAttrs, self: LeaseAttrs): boolean {
  if (self.publicIP !== undefined) return owner.publicIP === self.publicIP;
  return self.publicIPv6 !== undefined && owner.publicIPv6 === self.publicIPv6;
}

/** The owner of a lease for a sentence: `192.0.2.11 (node 3f…-9a…)`. */
export function describeOwner(attrs: LeaseAttrs): string {
  const address = attrs.publicIP ?? attrs.publicIPv6 ?? "no address";
  return attrs.nodeId === undefined ? address : `${address} (node ${attrs.nodeId})`;
}

/** One machine cannot run two boots at once, so the same machine under another boot is the past of this node. */
function isEarlierBoot(owner: LeaseAttrs, self: LeaseAttrs): boolean {
  const machine = machineOf(self.nodeId);
  return (
    machine !== undefined &&
    machine === machineOf(owner.nodeId) &&
    owner.bootId !== undefined &&
    self.bootId !== undefined &&
    owner.bootId !== self.bootId
  );
}

function machineOf(nodeId: string | undefined): string | undefined {
  return nodeId === undefined ? undefined : DERIVED_ID.exec(nodeId)?.[1];
}
