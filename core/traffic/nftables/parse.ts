import { canonicalPrefix } from "../../net/prefix.ts";
import type { Family } from "../intent.ts";
import type { AddressMatch, FamilyRules, Rule, Verdict } from "../rules.ts";
import { type BaseChain, CHAINS, familyName, tableName } from "./chains.ts";
import { type Json, parseEntries, recordOf } from "./json.ts";

/**
 * The rules in what `nft -j list table` printed; undefined when it is not a table as we would have written it:
 * something unknown in it, another hook, an empty chain, no JSON. Foreign JSON: every field is looked at.
 */
export function parseTable(text: string, family: Family): FamilyRules | undefined {
  const rules: Record<BaseChain["rules"], Rule[]> = { masquerade: [], forward: [] };
  const seen = new Set<string>();
  for (const entry of parseEntries(text)) {
    const [[kind, body] = []] = Object.entries(entry);
    if (kind === "metainfo") continue;
    const object = recordOf(body);
    if (kind === "table") {
      // A dormant table stands there and does nothing.
      if (object.name !== tableName(family) || object.flags !== undefined) return undefined;
      continue;
    }
    const name = kind === "chain" ? object.name : object.chain;
    const chain = CHAINS.find((one) => one.name === name);
    if (!chain) return undefined;
    if (kind === "chain" && isAsWritten(object, chain)) seen.add(chain.name);
    else if (kind === "rule") {
      const rule = parseRule(object.expr, family);
      if (!rule) return undefined;
      rules[chain.rules].push(rule);
    } else return undefined;
  }
  const complete = CHAINS.every((chain) => seen.has(chain.name) === rules[chain.rules].length > 0);
  return complete && seen.size > 0 ? { family, ...rules } : undefined;
}

function isAsWritten(object: Json, chain: BaseChain): boolean {
  return (
    object.type === chain.type &&
    object.hook === chain.hook &&
    object.prio === chain.priority &&
    object.policy === "accept"
  );
}

/** The statements of one rule; undefined for one that is none of ours. */
function parseRule(expr: unknown, family: Family): Rule | undefined {
  if (!Array.isArray(expr)) return undefined;
  const rule: { -readonly [Key in keyof Rule]?: Rule[Key] } = {};
  for (const statement of expr.map(recordOf)) {
    const verdict = parseVerdict(statement);
    // Nothing of ours comes behind a verdict.
    if (rule.verdict !== undefined) return undefined;
    if (verdict !== undefined) rule.verdict = verdict;
    else if (!addMatch(rule, recordOf(statement.match), family)) return undefined;
  }
  const { verdict, ...matches } = rule;
  return verdict === undefined ? undefined : { ...matches, verdict };
}

function parseVerdict(statement: Json): Verdict | undefined {
  if ("accept" in statement) return "accept";
  if ("return" in statement) return "return";
  if (!("masquerade" in statement)) return undefined;
  const { flags, ...others } = recordOf(statement.masquerade);
  if (Object.keys(others).length > 0) return undefined;
  // A single flag is a word, or (since nft 1.0.8) a list like several.
  const words = Array.isArray(flags) ? flags : flags === undefined ? [] : [flags];
  if (words.length === 0) return "masquerade";
  return words.length === 1 && words[0] === "fully-random" ? "masquerade-random" : undefined;
}

function addMatch(rule: { -readonly [Key in keyof Rule]?: Rule[Key] }, match: Json, family: Family): boolean {
  const { op, right } = match;
  const left = recordOf(match.left);
  const payload = recordOf(left.payload);
  if (payload.protocol === familyName(family)) {
    const address = parseAddress(op, right);
    const field = payload.field === "saddr" ? "source" : "destination";
    if (!address || (field === "destination" && payload.field !== "daddr") || rule[field]) return false;
    rule[field] = address;
    return true;
  }
  const masked = left["&"];
  if (!Array.isArray(masked) || rule.mark || op !== "==" || typeof right !== "number") return false;
  const [key, mask] = masked;
  if (recordOf(recordOf(key).meta).key !== "mark" || typeof mask !== "number") return false;
  rule.mark = { value: right, mask };
  return true;
}

function parseAddress(op: unknown, right: unknown): AddressMatch | undefined {
  const { addr, len } = recordOf(recordOf(right).prefix);
  const host = typeof right === "string" ? `${right}/${right.includes(":") ? 128 : 32}` : `${addr}/${len}`;
  const prefix = canonicalPrefix(host);
  if (prefix === undefined || (op !== "==" && op !== "!=")) return undefined;
  return op === "==" ? { prefix } : { prefix, not: true };
}
