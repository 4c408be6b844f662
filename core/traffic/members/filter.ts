import type { TunnelPacket } from "../../netlink/objects.ts";
import type { Family } from "../intent.ts";

/** Which packets of the tunnel are for members only, and who is a member, in one family; plain data. */
export interface MemberFilter {
  readonly family: Family;
  /** Without duplicates, in the order of {@link sortPackets}; never empty. */
  readonly packets: readonly TunnelPacket[];
  /** Public addresses of the members as canonical text. */
  readonly members: ReadonlySet<string>;
}

/** Members to take in and to put out. */
export interface MemberChange {
  readonly added: readonly string[];
  readonly removed: readonly string[];
}

/**
 * The filter of a family; undefined when none of the packets exists there (IP-in-IP over IPv6 is none of ours). Pure.
 */
export function planFilter(
  family: Family,
  packets: readonly TunnelPacket[],
  members: ReadonlySet<string>,
): MemberFilter | undefined {
  const there = sortPackets(family === 4 ? packets : packets.filter((packet) => "udpPort" in packet));
  return there.length === 0 ? undefined : { family, packets: there, members };
}

/** IP-in-IP first, then by port, each once. */
export function sortPackets(packets: readonly TunnelPacket[]): readonly TunnelPacket[] {
  const byKey = new Map(packets.map((packet) => [keyOf(packet), packet] as const));
  return [...byKey].toSorted(([a], [b]) => a - b).map(([, packet]) => packet);
}

/** Whether two filters are about the same packets. */
export function samePackets(a: MemberFilter, b: MemberFilter): boolean {
  return a.packets.map(keyOf).join() === b.packets.map(keyOf).join();
}

/** What turns the members of `present` into those of `wanted`. */
export function diffMembers(present: MemberFilter, wanted: MemberFilter): MemberChange {
  return {
    added: [...wanted.members].filter((member) => !present.members.has(member)),
    removed: [...present.members].filter((member) => !wanted.members.has(member)),
  };
}

function keyOf(packet: TunnelPacket): number {
  return "udpPort" in packet ? packet.udpPort : -1;
}
