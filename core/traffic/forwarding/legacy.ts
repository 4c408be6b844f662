import type { Family } from "../intent.ts";
import { isPlainJump, parseLine, parseRule } from "../iptables/line.ts";
import type { AcceptingChains, AcceptingRule, DroppingChain } from "./chain.ts";

/** The chains in `iptables-legacy-save -t filter` that drop by policy. */
export function parseLegacyDrops(text: string, command: string, family: Family): readonly DroppingChain[] {
  return [...text.matchAll(/^:(FORWARD|INPUT) DROP /gm)].map(([, chain = ""]) => ({
    hook: chain === "FORWARD" ? "forward" : "input",
    name: `${command} ${chain}`,
    families: [family],
    place: { kind: "legacy", command, chain },
  }));
}

/** The rules in `iptables-legacy-save -t filter` that accept packets by their addresses alone, by chain. */
export function parseLegacyRules(text: string): AcceptingChains {
  const chains = new Map<string, AcceptingRule[]>();
  for (const line of text.split("\n")) {
    const saved = parseLine(line);
    const rule = saved && readRule(saved.spec, saved.target);
    if (saved && rule) chains.set(saved.chain, [...(chains.get(saved.chain) ?? []), rule]);
  }
  return chains;
}

function readRule(spec: string, target: string | undefined): AcceptingRule | undefined {
  if (target !== undefined && isPlainJump(spec, target) && target !== "ACCEPT") return { to: target };
  const rule = parseRule(spec);
  if (rule?.verdict !== "accept" || rule.mark || rule.source?.not || rule.destination?.not) return undefined;
  return {
    ...(rule.source ? { source: rule.source.prefix } : {}),
    ...(rule.destination ? { destination: rule.destination.prefix } : {}),
  };
}
