import type { Finding } from "../observe/finding.ts";
import { placeOf, showKey } from "./issue.ts";
import { foldName, type JsonDocument, type JsonMember, type JsonNode } from "./json-tree.ts";
import { nearestName } from "./nearest.ts";

/** More warnings of one kind help nobody. */
const MOST_WARNINGS = 20;

/**
 * Warnings about keys that no one reads, with a "did you mean" among `known`. `parent` is put before the key in
 * messages (`Backend.`).
 */
export function warnUnknownKeys(
  members: readonly JsonMember[],
  known: readonly string[],
  document: JsonDocument,
  source: string,
  parent = "",
): Finding[] {
  const folded = new Set(known.map(foldName));
  const unknown = members.filter((member) => !folded.has(foldName(member.key)));
  const warnings = unknown.slice(0, MOST_WARNINGS).map((member): Finding => {
    const meant = nearestName(member.key, known);
    return {
      code: "CONFIG_UNKNOWN_KEY",
      severity: "warning",
      title: "unknown key in the network config",
      text: `${placeOf(document, source, member.keyStart)}: key ${showKey(parent + member.key)} is unknown and ignored`,
      fix: meant ? `did you mean ${showKey(parent + meant)}?` : `remove it; known are ${known.join(", ")}`,
    };
  });
  return cutOff(warnings, unknown.length, "CONFIG_UNKNOWN_KEY", "unknown keys", source);
}

/** Warnings about keys that are written more than once in one object, in any case; the last one counts. */
export function warnDuplicateKeys(document: JsonDocument, source: string): Finding[] {
  const warnings: Finding[] = [];
  let found = 0;
  const visit = (node: JsonNode): void => {
    if (node.kind === "array") node.items.forEach(visit);
    if (node.kind !== "object") return;
    const seen = new Map<string, JsonMember>();
    for (const member of node.members) {
      const earlier = seen.get(foldName(member.key));
      if (earlier && ++found <= MOST_WARNINGS) warnings.push(duplicate(document, source, earlier, member));
      seen.set(foldName(member.key), member);
      visit(member.value);
    }
  };
  visit(document.root);
  return cutOff(warnings, found, "CONFIG_DUPLICATE_KEY", "duplicate keys", source);
}

function duplicate(document: JsonDocument, source: string, earlier: JsonMember, later: JsonMember): Finding {
  const { line, column } = document.position(earlier.keyStart);
  const place = placeOf(document, source, later.keyStart);
  return {
    code: "CONFIG_DUPLICATE_KEY",
    severity: "warning",
    title: "a key stands twice in the network config",
    text: `${place}: key ${showKey(later.key)} repeats ${showKey(earlier.key)} of ${line}:${column}; the last one counts`,
    fix: "remove one of the two",
  };
}

function cutOff(warnings: Finding[], found: number, code: string, kind: string, source: string): Finding[] {
  if (found <= warnings.length) return warnings;
  const text = `${source}: ${found - warnings.length} further ${kind}`;
  return [
    ...warnings,
    { code, severity: "warning", title: `many ${kind}`, text, fix: "look at the document" },
  ];
}
