import type { TunnelPacket } from "../../netlink/objects.ts";
import type { Family } from "../intent.ts";
import { familyName } from "../nftables/chains.ts";
import type { MemberChange, MemberFilter } from "./filter.ts";

/** Our table, one per family. It is wholly ours. */
export const TABLE = "flannel-members";
/** The set of the members' addresses. */
export const SET = "members";
/** The chain that drops: at the input hook, after fragments are put together, before the tunnel unpacks. */
export const CHAIN = "input";
/** IPPROTO_IPIP (linux/in.h, RFC 2003). */
export const IPIP = 4;

/**
 * The text for one `nft -f -` that makes our table be this filter, whatever was there. The kernel takes it as one
 * transaction: there is no moment without a filter, nor with half of the members.
 */
export function renderFilter({ family, packets, members }: MemberFilter): string {
  const name = familyName(family);
  const elements = members.size > 0 ? ` elements = { ${[...members].join(", ")} };` : "";
  return [
    ...replaceTable(family),
    `table ${name} ${TABLE} {`,
    `\tset ${SET} { type ipv${family}_addr;${elements} }`,
    `\tchain ${CHAIN} {`,
    "\t\ttype filter hook input priority 0; policy accept;",
    ...packets.map((packet) => `\t\t${renderPacket(packet)} ${name} saddr != @${SET} counter drop`),
    "\t}",
    "}",
    "",
  ].join("\n");
}

/** The text that only changes the members; refused as a whole when the set is not as it was thought to be. */
export function renderChange(family: Family, { added, removed }: MemberChange): string {
  const set = `${familyName(family)} ${TABLE} ${SET}`;
  const line = (verb: string, members: readonly string[]) =>
    members.length > 0 ? `${verb} element ${set} { ${members.join(", ")} }\n` : "";
  return line("add", added) + line("delete", removed);
}

/** The text that removes our table, whether or not it is there. */
export function renderRemoval(family: Family): string {
  return `${replaceTable(family).join("\n")}\n`;
}

/** Created first, so that deleting it succeeds whether or not it was there. */
function replaceTable(family: Family): readonly string[] {
  const table = `table ${familyName(family)} ${TABLE}`;
  return [table, `delete ${table}`];
}

function renderPacket(packet: TunnelPacket): string {
  return "udpPort" in packet ? `udp dport ${packet.udpPort}` : `meta l4proto ${IPIP}`;
}
