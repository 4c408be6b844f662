import type { Issue } from "./issue.ts";
import { showValue } from "./issue.ts";
import { foldName, type JsonDocument, lastMember, toValue } from "./json-tree.ts";

/** The `Backend` object of the network config. */
export interface BackendConfig {
  /** `Type` in lower case, as backends are looked up. */
  readonly type: string;
  readonly typeAsWritten: string;
  /** All other keys as written. */
  readonly options: Readonly<Record<string, unknown>>;
}

/** What an absent `Backend` means: the documents of upstream say vxlan (its code says udp). */
export const DEFAULT_BACKEND_TYPE = "vxlan";

const HINT = 'write for example "Backend": {"Type": "vxlan"}, or remove the key';

/** Reads the `Backend` key; an {@link Issue} when it does not name a type. */
export function readBackend(document: JsonDocument): BackendConfig | Issue {
  const member = document.root.kind === "object" ? lastMember(document.root, "Backend") : undefined;
  if (!member) return { type: DEFAULT_BACKEND_TYPE, typeAsWritten: DEFAULT_BACKEND_TYPE, options: {} };
  const node = member.value;
  if (node.kind !== "object") {
    return {
      offset: node.start,
      what: `key "Backend": ${showValue(document, node)} is no object`,
      hint: HINT,
    };
  }
  const type = lastMember(node, "Type")?.value;
  if (!type) return { offset: node.start, what: 'key "Backend": "Type" is missing', hint: HINT };
  if (type.kind !== "string" || type.value === "") {
    const what = `key "Backend.Type": ${showValue(document, type)} is no backend type`;
    return { offset: type.start, what, hint: 'write a backend type as text, such as "vxlan"' };
  }
  const others = node.members.filter((other) => foldName(other.key) !== "type");
  return {
    type: type.value.toLowerCase(),
    typeAsWritten: type.value,
    options: Object.fromEntries(others.map((other) => [other.key, toValue(other.value)])),
  };
}
