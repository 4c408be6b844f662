import { isLegal } from "../../lease/allocate.ts";
import { describeSubnets } from "../../lease/key.ts";
import type { LeaseAttrs, Subnets } from "../../lease/lease.ts";
import { addressFamily, canonicalAddress } from "../../net/prefix.ts";
import { Fault } from "../../observe/fault.ts";
import { announce, commandLog } from "../command-log.ts";
import type { CommandLine } from "../flags.ts";
import { rangesOf, readConfigState, withLeases } from "../lease-access.ts";
import { readSubnets } from "../subnet-argument.ts";
import type { Answered } from "./status.ts";

/** A node id as `--node-id` takes it. */
const NODE_ID = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,252}$/;

const OUTCOME = {
  created: "is reserved",
  existed: "was reserved already",
  converted: "is a reservation now: the lease has lost its expiry",
} as const;

/**
 * `flanneld leases reserve SUBNET --for IP|NODE-ID [--force]`: a key without expiry, which the node takes when it
 * starts without a subnet of an earlier run.
 * @throws Fault `FLAG_INVALID`, `LEASE_ILLEGAL`, `LEASE_TAKEN`, `LEASE_HELD`, `ETCD_…`.
 */
export async function reserveLease(line: CommandLine): Promise<Answered> {
  announce(line);
  const subnets = readSubnets(line.operand);
  const owner = readOwner(line.own.get("for"));
  return withLeases(line.options, commandLog(line), async (manager, signal) => {
    const ranges = rangesOf(await readConfigState(manager, signal));
    if (ranges) refuseIllegal(subnets, isLegal(subnets, ranges));
    const outcome = await manager.reserve(subnets, owner, line.own.has("force"), signal);
    const name = owner.nodeId ?? owner.publicIP ?? owner.publicIPv6;
    return { text: `${describeSubnets(subnets)} ${OUTCOME[outcome]}, for ${name}\n`, code: 0 };
  });
}

function refuseIllegal(subnets: Subnets, reason: string | undefined): void {
  if (reason === undefined) return;
  throw new Fault("LEASE_ILLEGAL", `${describeSubnets(subnets)} cannot be reserved: ${reason}`, {
    hint: "Name a subnet that the network config allows; where it has both families, both, joined by a comma.",
  });
}

function readOwner(text: string | undefined): LeaseAttrs {
  if (text === undefined || text === "") {
    throw new Fault("FLAG_INVALID", "flag -for is missing", {
      hint: "write -for IP or -for NODE-ID: the node that the subnet is kept for",
    });
  }
  const address = canonicalAddress(text);
  if (address !== undefined) {
    return { backendType: "", [addressFamily(address) === 4 ? "publicIP" : "publicIPv6"]: address };
  }
  if (NODE_ID.test(text)) return { backendType: "", nodeId: text };
  const shown = JSON.stringify(text.slice(0, 64).toWellFormed());
  throw new Fault("FLAG_INVALID", `flag -for: ${shown} is neither an address nor a node id`, {
    hint: "flanneld leases ls and flanneld status show both",
  });
}
