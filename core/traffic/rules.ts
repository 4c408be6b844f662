import { canonicalPrefix, containsPrefix, type Prefix, parsePrefix } from "../net/prefix.ts";
import { Fault } from "../observe/fault.ts";
import type { Family, FamilyIntent, TrafficIntent } from "./intent.ts";

/** What happens to a packet that a rule matches; `return` leaves it to the rules of others. */
export type Verdict = "accept" | "return" | "masquerade" | "masquerade-random";

/** A network to hold an address against. */
export interface AddressMatch {
  /** Canonical CIDR text, never of length 0: such a match is left out. */
  readonly prefix: string;
  /** Matches everything but the prefix. */
  readonly not?: true;
}

/** One rule; all of its matches must hold. */
export interface Rule {
  /** `mark & mask == value`. */
  readonly mark?: { readonly value: number; readonly mask: number };
  readonly source?: AddressMatch;
  readonly destination?: AddressMatch;
  readonly verdict: Verdict;
}

/** Rules of one family, in order; an empty list means that there is no such chain. */
export interface FamilyRules {
  readonly family: Family;
  /** For packets that leave the host (postrouting, nat). */
  readonly masquerade: readonly Rule[];
  /** For packets on their way through the host (forward, filter). */
  readonly forward: readonly Rule[];
}

/**
 * The mark kube-proxy puts on packets that it masquerades itself, behind us in postrouting (KubeProxyConfiguration:
 * iptables.masqueradeBit, default 14).
 */
const KUBE_MARK = 0x4000;
/** Multicast: RFC 5771 and RFC 4291 section 2.7. Never masqueraded, the receivers would see the wrong sender. */
const MULTICAST: Readonly<Record<Family, string>> = { 4: "224.0.0.0/4", 6: "ff00::/8" };

/**
 * The rules of one family. Pure. Masquerading in the order of upstream's iptables rules, which every rule here is
 * reached by: marked by kube-proxy, own pods to the cluster, cluster to own pods, outside to own pods (forwarded as
 * it came) keep their address; then what `masqExclude` names; what leaves the cluster, and what enters it for other
 * nodes from elsewhere (the host itself), is masqueraded. Throws Fault `TRAFFIC_INTENT` for text that is no CIDR of
 * the family.
 */
export function planRules(family: Family, wanted: FamilyIntent, intent: TrafficIntent): FamilyRules {
  const network = readPrefix(wanted.network, family);
  const subnet = readPrefix(wanted.subnet, family);
  const N = match(network.text);
  const S = match(subnet.text);
  const notN = match(network.text, true);
  const masquerade = intent.fullyRandom ? "masquerade-random" : "masquerade";
  return {
    family,
    masquerade: intent.masquerade
      ? [
          { mark: { value: KUBE_MARK, mask: KUBE_MARK }, verdict: "return" },
          { source: S, destination: N, verdict: "return" },
          { source: N, destination: S, verdict: "return" },
          { source: notN, destination: S, verdict: "return" },
          ...wanted.masqExclude.map((text) => excludeRule(readPrefix(text, family), network)),
          { source: N, destination: match(MULTICAST[family], true), verdict: masquerade },
          { source: notN, destination: N, verdict: masquerade },
        ]
      : [],
    forward: intent.forward
      ? [
          { source: N, verdict: "accept" },
          { destination: N, verdict: "accept" },
        ]
      : [],
  };
}

/** The same rules for a host that cannot choose ports fully at random. */
export function withoutRandomPorts(rules: FamilyRules): FamilyRules {
  const plain = (rule: Rule): Rule =>
    rule.verdict === "masquerade-random" ? { ...rule, verdict: "masquerade" } : rule;
  return { ...rules, masquerade: rules.masquerade.map(plain) };
}

/** Whether two lists say the same in the same order. */
export function equalRules(a: readonly Rule[], b: readonly Rule[]): boolean {
  return a.length === b.length && a.every((rule, at) => keyOf(rule) === keyOf(b[at]));
}

interface NamedPrefix {
  readonly prefix: Prefix;
  readonly text: string;
}

function excludeRule(excluded: NamedPrefix, network: NamedPrefix): Rule {
  if (containsPrefix(network.prefix, excluded.prefix))
    return { source: match(excluded.text), verdict: "return" };
  const source = match(network.text);
  if (excluded.prefix.length === 0) return { source, verdict: "return" };
  return { source, destination: match(excluded.text), verdict: "return" };
}

function match(prefix: string, not = false): AddressMatch {
  return not ? { prefix, not } : { prefix };
}

function readPrefix(text: string, family: Family): NamedPrefix {
  const prefix = parsePrefix(text);
  const canonical = canonicalPrefix(text);
  if (prefix?.family !== family || canonical === undefined) {
    throw new Fault("TRAFFIC_INTENT", `traffic rules: "${text}" is no IPv${family} network`);
  }
  return { prefix, text: canonical };
}

function keyOf(rule: Rule | undefined): string {
  const address = (one: AddressMatch | undefined) => (one ? `${one.not ? "!" : ""}${one.prefix}` : "");
  const mark = rule?.mark ? `${rule.mark.value}/${rule.mark.mask}` : "";
  return [mark, address(rule?.source), address(rule?.destination), rule?.verdict].join(" ");
}
