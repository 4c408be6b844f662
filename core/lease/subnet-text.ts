import { formatPrefix, parsePrefix } from "../net/prefix.ts";
import type { Subnets } from "./lease.ts";

/**
 * The subnets that an operator wrote: `10.244.5.0/24`, for dual stack both families joined by a comma, or a key as the
 * store has it (`10.244.5.0-24&fd00::-64`). Host bits are dropped, so FLANNEL_SUBNET of a subnet file will do.
 * Undefined when it is no such text.
 */
export function parseSubnets(text: string): Subnets | undefined {
  const found: { ipv4?: string; ipv6?: string } = {};
  for (const part of text.split(/[,&]/)) {
    const prefix = parsePrefix(part.trim().replace(/-(\d+)$/, "/$1"));
    if (!prefix) return undefined;
    const family = prefix.family === 4 ? "ipv4" : "ipv6";
    if (found[family] !== undefined) return undefined;
    found[family] = formatPrefix(prefix);
  }
  return found;
}
