import type { Fault } from "../observe/fault.ts";
import type { Finding } from "../observe/finding.ts";
import { type Issue, issuesToFault, showValue } from "./issue.ts";
import {
  foldName,
  type JsonDocument,
  type JsonNode,
  type JsonPath,
  lastMember,
  toValue,
} from "./json-tree.ts";
import { warnUnknownKeys } from "./keys.ts";

/** An issue as Standard Schema v1 has it. */
export interface OptionIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/**
 * The options of a `Backend` under the names its plugin documents: keys match in any case, of several the last one
 * in the document counts. Unknown keys are left out, each with a warning and a "did you mean".
 */
export function foldOptionNames(
  options: Readonly<Record<string, unknown>>,
  optionNames: readonly string[],
  document: JsonDocument,
  source: string,
): { options: Record<string, unknown>; warnings: readonly Finding[] } {
  const backend = document.find(["Backend"]);
  if (backend?.kind !== "object") return { options: foldPlain(options, optionNames), warnings: [] };
  const known = [...optionNames, "Type"];
  const entries = optionNames.flatMap((name) => {
    const member = lastMember(backend, name);
    return member && Object.hasOwn(options, member.key) ? [[name, options[member.key]] as const] : [];
  });
  return {
    options: Object.fromEntries(entries),
    warnings: warnUnknownKeys(backend.members, known, document, source, "Backend."),
  };
}

function foldPlain(
  options: Readonly<Record<string, unknown>>,
  optionNames: readonly string[],
): Record<string, unknown> {
  const keys = Object.keys(options);
  return Object.fromEntries(
    optionNames.flatMap((name) => {
      const key = keys.findLast((candidate) => foldName(candidate) === foldName(name));
      return key === undefined ? [] : [[name, options[key]] as const];
    }),
  );
}

/**
 * The issues a plugin's schema raised, as one fault with the places in the document. `secrets` are option paths
 * (`PSK`, `Auth.Token`) whose value must not be shown: a message that contains it is replaced.
 */
export function optionFault(
  issues: readonly OptionIssue[],
  document: JsonDocument,
  source: string,
  secrets: readonly string[] = [],
): Fault {
  return issuesToFault(
    issues.map((issue) => positioned(issue, document, secrets)),
    document,
    source,
  );
}

function positioned(issue: OptionIssue, document: JsonDocument, secrets: readonly string[]): Issue {
  const path = (issue.path ?? []).map(toStep);
  const node = document.find(["Backend", ...path]);
  const key = `key "${["Backend", ...path].join(".")}"`;
  const hint = "see the documentation of the backend";
  if (!node) {
    const parent = document.find(["Backend"]) ?? document.root;
    return { offset: parent.start, what: `${key} is missing: ${issue.message}`, hint };
  }
  if (isSecret(path, secrets)) {
    const told = mentions(issue.message, document, node)
      ? "is not valid (a secret, not shown)"
      : issue.message;
    return { offset: node.start, what: `${key}: ${told}`, hint };
  }
  const value = path.length > 0 ? `${showValue(document, node)}: ` : "";
  return { offset: node.start, what: `${key}: ${value}${issue.message}`, hint };
}

function toStep(step: PropertyKey | { readonly key: PropertyKey }): string | number {
  const key = typeof step === "object" ? step.key : step;
  return typeof key === "symbol" ? String(key) : key;
}

/** A path is secret when it, or what it lies in, is; or when it holds a secret. */
function isSecret(path: JsonPath, secrets: readonly string[]): boolean {
  const own = `${foldName(path.join("."))}.`;
  return secrets.some((secret) => {
    const name = `${foldName(secret)}.`;
    return own.startsWith(name) || name.startsWith(own) || path.length === 0;
  });
}

/** Whether a message repeats a value: as written, decoded, or any text inside an object or list. */
function mentions(message: string, document: JsonDocument, node: JsonNode): boolean {
  if (node.kind === "object") return node.members.some((member) => mentions(message, document, member.value));
  if (node.kind === "array") return node.items.some((item) => mentions(message, document, item));
  const value = String(toValue(node));
  return value !== "" && (message.includes(value) || message.includes(document.raw(node)));
}
