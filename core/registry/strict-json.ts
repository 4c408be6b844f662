import * as v from "valibot";
import { readJson } from "../config/json.ts";
import type { JsonDocument, JsonNode, JsonPath } from "../config/json-tree.ts";
import { nearestName } from "../config/nearest.ts";
import { Fault } from "../observe/fault.ts";

/** Longest value that is repeated in a message, characters. */
const SHOWN = 60;

/**
 * Reads a JSON file and checks it against an object schema. Unlike in the network config, keys match in their exact
 * case. `file` heads the messages.
 * @throws Fault `code`, `<file>:<line>:<column>: key "backends[0].type": <value> <what is wrong>`, for the first
 * mistake; the further ones are in `others`.
 */
export function readChecked<Schema extends v.GenericSchema>(
  schema: Schema,
  source: string,
  file: string,
  code: string,
): v.InferOutput<Schema> {
  // Files are right nearly always: only a wrong one pays for the reader that keeps positions.
  const value = parseQuickly(source);
  const parsed = v.safeParse(schema, value);
  if (parsed.success && !Array.isArray(value)) return parsed.output;

  const document = readJson(source, file, code);
  const mistakes =
    document.root.kind === "object"
      ? (parsed.issues ?? []).map((issue) => explain(issue, schema, document))
      : [{ path: [], what: "the file must hold a JSON object", fix: "write {…}" }];
  const [first, ...others] = mistakes.map(({ path, what, fix }) => {
    const { line, column } = document.position(nodeAt(document.root, path).start);
    const key = path.length === 0 ? "" : ` key "${renderPath(path)}":`;
    return new Fault(code, `${file}:${line}:${column}:${key} ${what}`, { hint: fix });
  });
  throw new Fault(code, first?.message ?? file, { hint: first?.hint ?? "", others });
}

function parseQuickly(source: string): unknown {
  try {
    return JSON.parse(source.replace(/^\ufeff/, ""));
  } catch {
    return undefined;
  }
}

interface Mistake {
  readonly path: JsonPath;
  readonly what: string;
  readonly fix: string;
}

function explain(issue: v.BaseIssue<unknown>, schema: unknown, document: JsonDocument): Mistake {
  const path = (issue.path ?? []).map((item) => item.key as string | number);
  const last = String(path.at(-1) ?? "");
  if (issue.type === "strict_object" && issue.expected === "never") {
    const nearest = nearestName(last, knownKeys(schema, path.slice(0, -1)));
    if (nearest === undefined) return { path, what: "is not a known key", fix: `remove "${last}"` };
    const what = `is not a known key (did you mean "${nearest}"?)`;
    return { path, what, fix: `rename "${last}" to "${nearest}" or remove it` };
  }
  if (issue.type === "strict_object" && issue.received === "undefined") {
    return { path, what: "is missing", fix: `add "${last}"` };
  }
  const rule =
    issue.type === "strict_object" || issue.type === "object" ? "must be an object" : issue.message;
  return { path, what: `${show(document, path)} ${rule}`, fix: `correct "${renderPath(path)}"` };
}

/** The parts of a valibot schema that lead further down. */
interface SchemaShape {
  readonly entries?: Readonly<Record<string, unknown>>;
  readonly wrapped?: unknown;
  readonly item?: unknown;
  readonly pipe?: readonly unknown[];
}

/** Keys of the object schema at a path, none where there is no such object. */
function knownKeys(schema: unknown, path: JsonPath): readonly string[] {
  if (schema === null || typeof schema !== "object") return [];
  const { entries, wrapped, item, pipe } = schema as SchemaShape;
  if (wrapped !== undefined) return knownKeys(wrapped, path);
  if (pipe !== undefined && entries === undefined && item === undefined) return knownKeys(pipe[0], path);
  const [step, ...rest] = path;
  if (step === undefined) return Object.keys(entries ?? {});
  return knownKeys(typeof step === "number" ? item : entries?.[step], rest);
}

/** The node at a path with exact keys; for a missing key the object that lacks it. */
function nodeAt(root: JsonNode, path: JsonPath): JsonNode {
  let node = root;
  for (const step of path) {
    let next: JsonNode | undefined;
    if (node.kind === "array") next = node.items[Number(step)];
    else if (node.kind === "object") next = node.members.findLast((member) => member.key === step)?.value;
    if (!next) break;
    node = next;
  }
  return node;
}

function show(document: JsonDocument, path: JsonPath): string {
  const raw = document.raw(nodeAt(document.root, path)).replace(/\s+/g, " ");
  return raw.length > SHOWN ? `${raw.slice(0, SHOWN)}…` : raw;
}

/** `["backends", 0, "type"]` as `backends[0].type`. */
function renderPath(path: JsonPath): string {
  return path
    .map((step, at) => (typeof step === "number" ? `[${step}]` : `${at === 0 ? "" : "."}${step}`))
    .join("");
}
