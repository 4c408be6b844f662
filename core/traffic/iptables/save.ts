import { OWN_CHAINS } from "./chains.ts";
import { parseLine, type SavedLine } from "./line.ts";

/** What `iptables-save` shows that matters to us. */
export interface SavedState {
  /** Specs of the rules of our chains, in order; a chain that is not there is missing. */
  readonly chains: ReadonlyMap<string, readonly string[]>;
  /** Everybody's jumps to our chains, by our chain's name, in order. */
  readonly jumps: ReadonlyMap<string, readonly SavedLine[]>;
  /** Tables with rules that only `nft` understands: what is in them is not shown, not even ours. */
  readonly hidden: ReadonlySet<string>;
  /** How much others have here. */
  readonly others: Others;
}

/** Signs of who else uses a variant of iptables. */
export interface Others {
  readonly rules: number;
  /** There are chains of a kubelet, kube-proxy or Docker, who set the tone on a node. */
  readonly leaders: boolean;
}

/** Chains of those that forward or translate packets on most nodes (kubelet's hint for this purpose among them). */
const LEADERS = /^:(KUBE-|DOCKER)/;

/** iptables-nft about a table that somebody filled with `nft`. */
const HIDDEN = /^# Table `(\w+)' is incompatible/;

/** Reads the output of `iptables-save`, of any version and variant. Pure; some 10 ms for 20,000 rules. */
export function parseSave(text: string): SavedState {
  const chains = new Map<string, string[]>();
  const jumps = new Map<string, SavedLine[]>();
  const hidden = new Set<string>();
  let table = "";
  let rules = 0;
  let leaders = false;
  for (const line of text.split("\n")) {
    if (line.startsWith("*")) table = line.slice(1).trim();
    else if (line.startsWith("#")) {
      const name = HIDDEN.exec(line)?.[1];
      if (name !== undefined) hidden.add(name);
    } else if (line.startsWith(":")) {
      leaders ||= LEADERS.test(line);
      const own = ownChain(table, line.slice(1).split(" ", 1)[0]);
      if (own) chains.set(own.name, []);
    } else if (line.startsWith("-A ")) {
      if (!line.includes("FLANNEL-")) {
        rules++;
        continue;
      }
      const saved = parseLine(line);
      if (!saved) continue;
      const own = ownChain(table, saved.chain);
      const target = ownChain(table, saved.target);
      if (own) chains.set(own.name, [...(chains.get(own.name) ?? []), saved.spec]);
      if (target) jumps.set(target.name, [...(jumps.get(target.name) ?? []), saved]);
    }
  }
  return { chains, jumps, hidden, others: { rules, leaders } };
}

function ownChain(table: string, name: string | undefined) {
  return OWN_CHAINS.find((chain) => chain.table === table && chain.name === name);
}
