import { canonicalPrefix } from "../../net/prefix.ts";
import { ALL_FAMILIES, type Family } from "../intent.ts";
import { familyName } from "../nftables/chains.ts";
import { type Json, parseEntries, recordOf } from "../nftables/json.ts";
import type { AcceptingChains, AcceptingRule, DroppingChain } from "./chain.ts";

/** Tables of these families see packets of IP. */
const FAMILIES: Readonly<Record<string, readonly Family[]>> = { ip: [4], ip6: [6], inet: ALL_FAMILIES };

/** The chains of `nft -j list chains` that drop by policy. Foreign JSON: every field is looked at. */
export function parseDroppingChains(text: string): readonly DroppingChain[] {
  return entriesOf(text, "chain").flatMap(({ family, table, name, hook, policy }): DroppingChain[] => {
    if (policy !== "drop" || (hook !== "forward" && hook !== "input")) return [];
    if (typeof family !== "string" || typeof table !== "string" || typeof name !== "string") return [];
    const families = FAMILIES[family];
    if (!families) return [];
    const place = { kind: "nftables", family, table, chain: name } as const;
    return [{ hook, name: `${family} ${table} ${name}`, families, place }];
  });
}

/** The rules in `nft -j list table` that accept packets of a family by their addresses alone, by chain. */
export function parseAcceptingRules(text: string, family: Family): AcceptingChains {
  const chains = new Map<string, AcceptingRule[]>();
  for (const { chain, expr } of entriesOf(text, "rule")) {
    const rule = Array.isArray(expr) ? readRule(expr.map(recordOf), family) : undefined;
    if (typeof chain !== "string" || !rule) continue;
    chains.set(chain, [...(chains.get(chain) ?? []), rule]);
  }
  return chains;
}

function readRule(statements: readonly Json[], family: Family): AcceptingRule | undefined {
  const rule: { source?: string; destination?: string } = {};
  for (const statement of statements) {
    const [[kind, body] = []] = Object.entries(statement);
    if (kind === "accept") return rule;
    if (kind === "jump" || kind === "goto") {
      const { target } = recordOf(body);
      return typeof target === "string" ? { ...rule, to: target } : undefined;
    }
    // What iptables-nft writes as a comment is an extension to nft.
    const harmless = kind === "counter" || kind === "log" || (kind === "xt" && isComment(recordOf(body)));
    if (harmless) continue;
    if (kind !== "match" || !addMatch(rule, recordOf(body), family)) return undefined;
  }
  return undefined;
}

function isComment({ name }: Json): boolean {
  return name === "comment";
}

/** False for a condition on anything but the family's addresses. */
function addMatch(rule: { source?: string; destination?: string }, match: Json, family: Family): boolean {
  if (match.op !== "==") return false;
  const left = recordOf(match.left);
  if (recordOf(left.meta).key === "nfproto") return match.right === (family === 4 ? "ipv4" : "ipv6");
  const { protocol, field } = recordOf(left.payload);
  const address = prefixOf(match.right);
  if (protocol !== familyName(family) || address === undefined) return false;
  if (field === "saddr") rule.source = address;
  else if (field === "daddr") rule.destination = address;
  else return false;
  return true;
}

function prefixOf(right: unknown): string | undefined {
  const { addr, len } = recordOf(recordOf(right).prefix);
  const text = typeof right === "string" ? `${right}/${right.includes(":") ? 128 : 32}` : `${addr}/${len}`;
  return canonicalPrefix(text);
}

function entriesOf(text: string, kind: string): readonly Json[] {
  return parseEntries(text).flatMap((entry): Json[] => (kind in entry ? [recordOf(entry[kind])] : []));
}
