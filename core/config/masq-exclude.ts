import type { Families } from "../lease/lease.ts";
import { isIPv4Mapped } from "../net/ipv6.ts";
import { addressFamily, canonicalPrefix, formatPrefix, hasHostBits, parsePrefix } from "../net/prefix.ts";
import { type Issue, showValue } from "./issue.ts";
import { type JsonDocument, type JsonNode, lastMember } from "./json-tree.ts";

/** Destinations and pods whose packets keep their source address: canonical CIDR text, each once. */
export interface MasqExclude {
  readonly ipv4: readonly string[];
  readonly ipv6: readonly string[];
}

/** What the key `MasqExclude` says; `warnings` are places with something that is read, but not as written. */
export interface MasqExcludeReading {
  readonly masqExclude: MasqExclude;
  readonly issues: readonly Issue[];
  readonly warnings: readonly (Issue & { readonly code: string })[];
}

/** Name of the key. */
export const MASQ_EXCLUDE_KEY = "MasqExclude";

const HINT = `write a list of networks such as "${MASQ_EXCLUDE_KEY}": ["192.168.0.0/16"]`;
/** Each becomes a rule that packets are held against one after the other. */
const MOST = 256;

/**
 * Reads the list of CIDR texts under `MasqExclude`; absent and null mean none. Networks of a family that is off are
 * left out with a warning.
 */
export function readMasqExclude(document: JsonDocument, families: Families): MasqExcludeReading {
  const found = { ipv4: new Set<string>(), ipv6: new Set<string>() };
  const issues: Issue[] = [];
  const warnings: (Issue & { code: string })[] = [];
  const key = (at?: number) => `key "${MASQ_EXCLUDE_KEY}${at === undefined ? "" : `[${at}]`}"`;
  for (const [at, node] of listItems(document, key(), issues).entries()) {
    const shown = `${key(at)}: ${showValue(document, node)}`;
    const problem = explainItem(node);
    const prefix = node.kind === "string" ? parsePrefix(node.value) : undefined;
    if (problem !== undefined || !prefix || node.kind !== "string") {
      issues.push({ offset: node.start, what: `${shown} ${problem ?? "is no network"}`, hint: HINT });
      continue;
    }
    const family = prefix.family === 4 ? "ipv4" : "ipv6";
    const canonical = formatPrefix(prefix);
    if (hasHostBits(node.value)) {
      const what = `${shown} has host bits and is read as ${canonical}`;
      warnings.push({ code: "CONFIG_HOST_BITS", offset: node.start, what, hint: `write "${canonical}"` });
    }
    if (families[family]) found[family].add(canonical);
    else {
      const what = `${shown} is ignored: IPv${prefix.family} is not enabled`;
      warnings.push({ code: "CONFIG_IGNORED_KEY", offset: node.start, what, hint: "remove it" });
    }
  }
  return { masqExclude: { ipv4: [...found.ipv4], ipv6: [...found.ipv6] }, issues, warnings };
}

function listItems(document: JsonDocument, key: string, issues: Issue[]): readonly JsonNode[] {
  const { root } = document;
  const node = root.kind === "object" ? lastMember(root, MASQ_EXCLUDE_KEY)?.value : undefined;
  if (!node || node.kind === "null") return [];
  if (node.kind !== "array") {
    issues.push({
      offset: node.start,
      what: `${key}: ${showValue(document, node)} is no list of networks`,
      hint: HINT,
    });
    return [];
  }
  if (node.items.length > MOST) {
    const what = `${key} has ${node.items.length} networks, at most ${MOST} are allowed`;
    issues.push({ offset: node.start, what, hint: "sum them up into larger networks" });
    return [];
  }
  return node.items;
}

/** What is wrong with an item, going on after its value; undefined when nothing is. */
function explainItem(node: JsonNode): string | undefined {
  if (node.kind !== "string") return "must be text: a network in CIDR form";
  const prefix = parsePrefix(node.value);
  if (prefix?.family === 6 && prefix.length >= 96 && isIPv4Mapped(prefix.base)) {
    return "is an IPv4 network in IPv6 form; write it in IPv4 form";
  }
  if (prefix) return undefined;
  const family = addressFamily(node.value);
  if (family !== undefined) {
    const length = family === 4 ? 32 : 128;
    return `lacks the prefix length; nearest legal value is ${canonicalPrefix(`${node.value}/${length}`)}`;
  }
  const trimmed = canonicalPrefix(node.value.trim());
  return `is no network in CIDR form${trimmed === undefined ? "" : `; nearest legal value is ${trimmed}`}`;
}
