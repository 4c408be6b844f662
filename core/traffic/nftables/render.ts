import type { Family } from "../intent.ts";
import type { AddressMatch, FamilyRules, Rule } from "../rules.ts";
import { CHAINS, familyName, tableName } from "./chains.ts";

/**
 * The text for one `nft -f -` that replaces our table by these rules. The kernel takes it as one transaction: no
 * packet meets a half-made table. Without any rule the table just goes.
 */
export function renderTransaction(rules: FamilyRules): string {
  const table = `table ${familyName(rules.family)} ${tableName(rules.family)}`;
  // Created first, so that deleting it succeeds whether or not it was there.
  const lines = [table, `delete ${table}`];
  const chains = CHAINS.filter((chain) => rules[chain.rules].length > 0);
  if (chains.length === 0) return `${lines.join("\n")}\n`;
  lines.push(`${table} {`);
  for (const chain of chains) {
    lines.push(
      `\tchain ${chain.name} {`,
      `\t\ttype ${chain.type} hook ${chain.hook} priority ${chain.priority}; policy accept;`,
      ...rules[chain.rules].map((rule) => `\t\t${renderRule(rule, rules.family)}`),
      "\t}",
    );
  }
  return `${[...lines, "}"].join("\n")}\n`;
}

/** One rule as `nft` reads it. */
export function renderRule(rule: Rule, family: Family): string {
  const words: string[] = [];
  if (rule.mark) {
    words.push(`meta mark & ${hex(rule.mark.mask)} == ${hex(rule.mark.value)}`);
  }
  const address = (field: "saddr" | "daddr", match: AddressMatch | undefined) => {
    if (match) words.push(`${familyName(family)} ${field} ${match.not ? "!= " : ""}${match.prefix}`);
  };
  address("saddr", rule.source);
  address("daddr", rule.destination);
  words.push(rule.verdict === "masquerade-random" ? "masquerade fully-random" : rule.verdict);
  return words.join(" ");
}

function hex(number: number): string {
  return `0x${number.toString(16).padStart(8, "0")}`;
}
