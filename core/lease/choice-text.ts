import { Fault } from "../observe/fault.ts";
import type { Finding } from "../observe/finding.ts";
import type { Exhaustion } from "./allocate.ts";
import { type BadEntry, isBad, isReservation, type StoredLease } from "./entry.ts";
import { describeOwner } from "./identity.ts";
import { describeSubnets } from "./key.ts";
import type { LeaseAttrs, Subnets } from "./lease.ts";

/** Two nodes under one public address: `LEASE_CLASH`, naming both and the key that decides. */
export function clashFault(holder: StoredLease, self: LeaseAttrs): Fault {
  const address = self.publicIP ?? self.publicIPv6 ?? "";
  const other = holder.attrs.nodeId ?? "without an id";
  return new Fault(
    "LEASE_CLASH",
    `the public address ${address} of this node (node ${self.nodeId}) belongs to node ${other} in lease "${holder.key}"`,
    {
      hint:
        "give every node an address of its own (--iface, --public-ip); " +
        `if node ${other} is gone for good, delete the key subnets/${holder.key} and start again`,
    },
  );
}

/** No subnet left in a family: `LEASE_EXHAUSTED`, with the counts that tell why. */
export function exhaustedFault(
  { family, range, total, used, holders }: Exhaustion,
  entries: { readonly leases: readonly StoredLease[]; readonly bad: readonly BadEntry[] },
): Fault {
  const reserved = entries.leases.filter(isReservation).length;
  const unreadable = entries.bad.filter((entry) => entry.subnets !== undefined).length;
  const scope = `${range.subnetMin} to ${range.subnetMax} in /${range.subnetLen}`;
  return new Fault(
    "LEASE_EXHAUSTED",
    `out of IPv${family} subnets: ${used} of ${total} in use, 0 free (${scope} of ${range.network}; ` +
      `${holders} keys in the range; of all keys ${reserved} without expiry, ${unreadable} unreadable)`,
    {
      hint:
        "delete the keys of nodes that are gone or wait for them to expire (a shorter --subnet-lease-ttl frees " +
        "them sooner), or widen the network config's Network, SubnetLen or SubnetMin..SubnetMax",
    },
  );
}

/** The stored subnet of the last run cannot be had: somebody else holds it. */
export function noteTaken(subnet: string, holder: StoredLease | BadEntry): Finding {
  const owner = isBad(holder)
    ? `a key with an unreadable value (${holder.reason})`
    : describeOwner(holder.attrs);
  return {
    code: "LEASE_PREVIOUS_TAKEN",
    severity: "warning",
    title: "previous subnet taken",
    text: `the previous subnet ${subnet} now belongs to ${owner}, key "${holder.key}"; another one is used`,
    fix: "restart the pods of this node that still have addresses of the previous subnet",
  };
}

/** The stored subnet of the last run does not fit the network config any more. */
export function noteIllegal(subnet: string, reason: string): Finding {
  return {
    code: "LEASE_PREVIOUS_ILLEGAL",
    severity: "warning",
    title: "previous subnet not legal",
    text: `the previous subnet ${subnet} is not used again: ${reason}`,
    fix: "if the network config was changed on purpose, restart the pods of this node; else correct it",
  };
}

/** A reservation meant for this node that it does not take. */
export function noteUnusedReservation(key: string, reason: string): Finding {
  return {
    code: "LEASE_RESERVATION_UNUSED",
    severity: "warning",
    title: "reservation not used",
    text: `the reservation "${key}" is for this node but is not used: ${reason}`,
    fix: "delete the reservation, or make it fit; it is taken at the next start",
  };
}

/** A second key under our node id that may belong to a living clone. */
export function noteSharedId(lease: StoredLease): Finding {
  return {
    code: "LEASE_ID_SHARED",
    severity: "warning",
    title: "node id used twice",
    text: `key "${lease.key}" carries this node's id but the address ${describeOwner(lease.attrs)} and another boot`,
    fix: "if another machine was cloned from this one, give it an id of its own (--node-id); else delete the key",
  };
}

/** Another node holds the subnet of our key too, and got it later. */
export function noteContested(subnets: Subnets, holder: StoredLease): Finding {
  return {
    code: "LEASE_CONTESTED",
    severity: "warning",
    title: "subnet held twice",
    text: `our subnet ${describeSubnets(subnets)} is also claimed by ${describeOwner(holder.attrs)}, key "${holder.key}"`,
    fix: `restart flannel on ${describeOwner(holder.attrs)}, or delete its key if that node is gone`,
  };
}
