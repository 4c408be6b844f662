import { networkInterfaces } from "node:os";
import { lockHolder } from "../../host/lock.ts";
import { identifyNode } from "../../host/node-id.ts";
import { isBad, isReservation, type StoredLease } from "../../lease/entry.ts";
import type { Listing, StoredJunk } from "../../lease/etcd/list.ts";
import { describeOwner } from "../../lease/identity.ts";
import type { LeaseAttrs, Subnets } from "../../lease/lease.ts";
import { parseSubnets } from "../../lease/subnet-text.ts";
import { Fault } from "../../observe/fault.ts";
import { announce, commandLog } from "../command-log.ts";
import type { CommandLine } from "../flags.ts";
import { withLeases } from "../lease-access.ts";
import type { Options } from "../options.ts";
import { readSubnets } from "../subnet-argument.ts";
import type { Answered } from "./status.ts";

/** Changes of the key between reading and deleting it after which something keeps writing. */
const MOST_RACES = 5;

/**
 * `flanneld leases release SUBNET [--force]`: deletes the key. Without `--force` only what nobody uses: a reservation
 * no node has taken, and the lease of this host while flanneld does not run on it.
 * @throws Fault `FLAG_INVALID`, `LEASE_UNKNOWN`, `LEASE_IN_USE`, `LEASE_RACE`, `ETCD_…`.
 */
export async function releaseLease(line: CommandLine): Promise<Answered> {
  announce(line);
  const { operand, options, own } = line;
  return withLeases(options, commandLog(line), async (manager, signal) => {
    for (let tries = 0; tries < MOST_RACES; tries++) {
      const entry = find(await manager.list(signal), operand);
      if (!own.has("force")) refuseUsed(entry, options);
      if (await manager.remove(entry, signal)) return { text: `${entry.key} is released\n`, code: 0 };
    }
    throw new Fault("LEASE_RACE", `${operand} changes all the time`, { hint: "Try again." });
  });
}

/** The entry that a subnet, one of its families, or its very key names. */
function find({ leases, bad }: Listing, operand: string): StoredLease | StoredJunk {
  const entries = [...leases, ...bad];
  const exact = entries.find(({ key }) => key === operand);
  if (exact) return exact;
  const subnets = parseSubnets(operand) ?? readSubnets(operand);
  const [found, ...others] = entries.filter((entry) => entry.subnets && names(subnets, entry.subnets));
  if (!found) {
    throw new Fault("LEASE_UNKNOWN", `nobody has ${operand}: there is no such key`, {
      hint: "flanneld leases ls shows all.",
    });
  }
  if (others.length === 0) return found;
  throw new Fault(
    "LEASE_UNKNOWN",
    `several keys have ${operand}: ${[found, ...others].map(({ key }) => key).join(", ")}`,
    {
      hint: "Name one of these keys.",
    },
  );
}

function names(wanted: Subnets, has: Subnets): boolean {
  return (
    (wanted.ipv4 === undefined || wanted.ipv4 === has.ipv4) &&
    (wanted.ipv6 === undefined || wanted.ipv6 === has.ipv6)
  );
}

function refuseUsed(entry: StoredLease | StoredJunk, options: Options): void {
  const reason = isBad(entry)
    ? `it cannot be read (${entry.reason}), so nobody knows whose it is`
    : whyUsed(entry, options);
  if (reason === undefined) return;
  throw new Fault("LEASE_IN_USE", `${entry.key} is not released: ${reason}`, {
    hint: "Stop flanneld on that node first, and wait until the lease has expired; or use --force.",
  });
}

function whyUsed(lease: StoredLease, options: Options): string | undefined {
  const owner = describeOwner(lease.attrs);
  if (isOwn(lease.attrs, options)) {
    return lockHolder(options.subnetFile) === undefined
      ? undefined
      : `flanneld runs on this host, ${owner}, and holds it`;
  }
  if (!isReservation(lease)) return `${owner} holds it, and it has not expired`;
  // A daemon that takes a reservation writes its boot id into it.
  return lease.attrs.bootId === undefined ? undefined : `${owner} has taken this reservation`;
}

function isOwn({ nodeId, publicIP, publicIPv6 }: LeaseAttrs, options: Options): boolean {
  const addresses = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  const own = addresses.find(({ address }) => address === publicIP || address === publicIPv6);
  if (nodeId === undefined) return own !== undefined;
  const { subnetFile } = options;
  // Of the interface that has the address: the id is derived from its MAC where it was not remembered.
  const identity = identifyNode({
    wanted: options.nodeId ?? "",
    subnetFile,
    ...(own ? { mac: own.mac } : {}),
  });
  return identity.nodeId === nodeId;
}
