import { addressFamily, canonicalAddress } from "../../net/prefix.ts";
import type { TunnelPacket } from "../../netlink/objects.ts";
import type { Family } from "../intent.ts";
import { familyName } from "../nftables/chains.ts";
import { type Json, parseEntries, recordOf } from "../nftables/json.ts";
import { type MemberFilter, sortPackets } from "./filter.ts";
import { CHAIN, IPIP, SET, TABLE } from "./render.ts";

/**
 * The filter in what `nft -j list table` printed; undefined when it is not a table as we would have written it:
 * something unknown in it, another hook, no JSON. Foreign JSON: every field is looked at.
 */
export function parseFilter(text: string, family: Family): MemberFilter | undefined {
  const packets: TunnelPacket[] = [];
  let members: ReadonlySet<string> | undefined;
  let chained = false;
  for (const entry of parseEntries(text)) {
    const [[kind, body] = []] = Object.entries(entry);
    const object = recordOf(body);
    if (kind === "metainfo") continue;
    if (kind === "table") {
      // A dormant table stands there and does nothing.
      if (object.name !== TABLE || object.flags !== undefined) return undefined;
    } else if (kind === "set" && object.name === SET && object.type === `ipv${family}_addr`) {
      members = parseMembers(object.elem, family);
      if (!members) return undefined;
    } else if (kind === "chain" && isAsWritten(object)) chained = true;
    else if (kind === "rule" && object.chain === CHAIN) {
      const packet = parseRule(object.expr, family);
      if (!packet) return undefined;
      packets.push(packet);
    } else return undefined;
  }
  if (!members || !chained || packets.length === 0) return undefined;
  return { family, packets: sortPackets(packets), members };
}

function isAsWritten({ name, type, hook, prio, policy }: Json): boolean {
  return name === CHAIN && type === "filter" && hook === "input" && prio === 0 && policy === "accept";
}

/** An absent list is an empty set; an element that is no plain address (a range, a time-out) is none of ours. */
function parseMembers(elements: unknown, family: Family): ReadonlySet<string> | undefined {
  if (elements === undefined) return new Set();
  if (!Array.isArray(elements)) return undefined;
  const members = new Set<string>();
  for (const element of elements) {
    const member = typeof element === "string" ? canonicalAddress(element) : undefined;
    if (member === undefined || addressFamily(member) !== family) return undefined;
    members.add(member);
  }
  return members;
}

/** `PACKET saddr != @members counter drop`; undefined for anything else. */
function parseRule(expr: unknown, family: Family): TunnelPacket | undefined {
  if (!Array.isArray(expr) || expr.length !== 4) return undefined;
  const [packet, stranger, counter, drop] = expr.map(recordOf);
  if (!packet || !stranger || !counter || !drop) return undefined;
  const { op, left, right } = recordOf(stranger.match);
  const { protocol, field } = recordOf(recordOf(left).payload);
  const filters = op === "!=" && right === `@${SET}` && protocol === familyName(family) && field === "saddr";
  return filters && "counter" in counter && "drop" in drop ? parsePacket(recordOf(packet.match)) : undefined;
}

function parsePacket({ op, left, right }: Json): TunnelPacket | undefined {
  if (op !== "==") return undefined;
  const { protocol, field } = recordOf(recordOf(left).payload);
  if (protocol === "udp" && field === "dport") {
    return typeof right === "number" ? { udpPort: right } : undefined;
  }
  // The name is what /etc/protocols says, where there is such a file.
  const named = right === IPIP || right === "ipencap" || right === "ipip" || right === "ipv4";
  return recordOf(recordOf(left).meta).key === "l4proto" && named ? { protocol: "ipip" } : undefined;
}
