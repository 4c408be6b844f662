import { Fault } from "../observe/fault.ts";
import type { Finding } from "../observe/finding.ts";
import type { JsonDocument, JsonNode } from "./json-tree.ts";

/** Longest value or key shown in a message. */
const SHOWN = 64;

/** Something wrong at a place of the document, before it becomes a fault. */
export interface Issue {
  /** Offset in the document. */
  readonly offset: number;
  /** What follows the place, e.g. `key "SubnetLen": 31 is too long`. */
  readonly what: string;
  readonly hint: string;
}

/** `<source>:<line>:<column>` of an offset. */
export function placeOf(document: JsonDocument, source: string, offset: number): string {
  const { line, column } = document.position(offset);
  return `${source}:${line}:${column}`;
}

/**
 * One fault for all issues, those first in the document first; warnings found on the way come last among `others`,
 * since a misspelt key is often why another one is missing.
 */
export function issuesToFault(
  issues: readonly Issue[],
  document: JsonDocument,
  source: string,
  warnings: readonly Finding[] = [],
): Fault {
  const faults = issues
    .toSorted((a, b) => a.offset - b.offset)
    .map(({ offset, what, hint }) => ({ message: `${placeOf(document, source, offset)}: ${what}`, hint }));
  const [first, ...rest] = faults;
  return new Fault("CONFIG_INVALID", first?.message ?? `${source}: is not valid`, {
    hint: first?.hint ?? "",
    others: [
      ...rest.map(({ message, hint }) => new Fault("CONFIG_INVALID", message, { hint })),
      ...warnings.map(({ code, text, fix }) => new Fault(code, text, { hint: fix })),
    ],
  });
}

/** A value as written, for a message: cut when long, named by its kind when it is no scalar. */
export function showValue(document: JsonDocument, node: JsonNode): string {
  if (node.kind === "object") return "an object";
  if (node.kind === "array") return "a list";
  const raw = node.kind === "string" ? JSON.stringify(node.value) : document.raw(node);
  return shorten(raw);
}

/** A key in quotes, for a message. */
export function showKey(key: string): string {
  return shorten(JSON.stringify(key));
}

function shorten(text: string): string {
  return text.length > SHOWN ? `${text.slice(0, SHOWN).toWellFormed()}…` : text;
}
