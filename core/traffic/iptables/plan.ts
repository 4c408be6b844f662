import { equalRules, type FamilyRules } from "../rules.ts";
import { OWN_CHAINS, type OwnChain } from "./chains.ts";
import { isPlainJump, parseRule, renderJump, renderRule } from "./line.ts";
import type { SavedState } from "./save.ts";

/** What to feed to one `iptables-restore --noflush`, and what it does, in words. */
export interface RestorePlan {
  /** Empty when there is nothing to do. */
  readonly payload: string;
  readonly actions: readonly string[];
}

interface Step {
  readonly lines: readonly string[];
  readonly actions: readonly string[];
}

const NOTHING: Step = { lines: [], actions: [] };

/** The difference between what is there and what is wanted. Pure. */
export function planRestore(state: SavedState, rules: FamilyRules): RestorePlan {
  return assemble((chain) => {
    const wanted = rules[chain.rules];
    if (wanted.length === 0) return removeChain(state, chain);
    const present = state.chains.get(chain.name)?.map(parseRule);
    const equal = present?.every((rule) => rule !== undefined) && equalRules(present, wanted);
    const content: Step = equal
      ? NOTHING
      : {
          // With --noflush, naming a chain creates it, or empties just this one.
          lines: [`:${chain.name} - [0:0]`, ...wanted.map((rule) => renderRule(chain, rule))],
          actions: [`${present ? "replaced" : "created"} chain ${chain.name}`],
        };
    const jumps = planJumps(state, chain);
    return {
      lines: [...content.lines, ...jumps.lines],
      actions: [...content.actions, ...jumps.actions],
    };
  });
}

/** What removes all of ours. Pure. */
export function planRemoval(state: SavedState): RestorePlan {
  return assemble((chain) => removeChain(state, chain));
}

/**
 * Exactly one plain jump from the base chain. One that is there stays where it is: what stands before or behind it
 * is the business of others. `-D` takes the first of equal rules, so the last one stays.
 */
function planJumps(state: SavedState, chain: OwnChain): Step {
  const present = (state.jumps.get(chain.name) ?? []).filter((jump) => jump.chain === chain.base);
  const kept = present.findLastIndex((jump) => isPlainJump(jump.spec, chain.name));
  const surplus = present.filter((_, at) => at !== kept);
  const lines = surplus.map((jump) => `-D ${jump.chain} ${jump.spec}`);
  const actions = surplus.map(() => `removed a surplus jump from ${chain.base} to ${chain.name}`);
  if (kept >= 0) return { lines, actions };
  return {
    lines: [...lines, renderJump(chain)],
    actions: [...actions, `added the jump from ${chain.base} to ${chain.name}`],
  };
}

/** Jumps first: a chain that is still jumped to cannot be deleted (EBUSY). */
function removeChain(state: SavedState, chain: OwnChain): Step {
  const jumps = state.jumps.get(chain.name) ?? [];
  const exists = state.chains.has(chain.name);
  return {
    lines: [
      ...jumps.map((jump) => `-D ${jump.chain} ${jump.spec}`),
      ...(exists ? [`-F ${chain.name}`, `-X ${chain.name}`] : []),
    ],
    actions: [
      ...jumps.map((jump) => `removed the jump from ${jump.chain} to ${chain.name}`),
      ...(exists ? [`removed chain ${chain.name}`] : []),
    ],
  };
}

/** One payload of all tables with something to do. */
function assemble(step: (chain: OwnChain) => Step): RestorePlan {
  let payload = "";
  const actions: string[] = [];
  for (const chain of OWN_CHAINS) {
    const { lines, actions: done } = step(chain);
    if (lines.length === 0) continue;
    payload += [`*${chain.table}`, ...lines, "COMMIT", ""].join("\n");
    actions.push(...done.map((action) => `${action} in table ${chain.table}`));
  }
  return { payload, actions };
}
