/** A JSON value with its place in the text: offsets are UTF-16 code units, `end` is exclusive. */
export type JsonNode =
  | ({ readonly kind: "object"; readonly members: readonly JsonMember[] } & Span)
  | ({ readonly kind: "array"; readonly items: readonly JsonNode[] } & Span)
  | ({ readonly kind: "string"; readonly value: string } & Span)
  | ({ readonly kind: "number"; readonly value: number } & Span)
  | ({ readonly kind: "boolean"; readonly value: boolean } & Span)
  | ({ readonly kind: "null" } & Span);

export type JsonObject = Extract<JsonNode, { kind: "object" }>;

export interface JsonMember {
  readonly key: string;
  /** Offset of the key's opening quote. */
  readonly keyStart: number;
  readonly value: JsonNode;
}

interface Span {
  readonly start: number;
  readonly end: number;
}

/** A place for people: both count from 1; columns count characters, not bytes. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

export type JsonPath = readonly (string | number)[];

/** A parsed JSON text that still knows where everything stood. */
export class JsonDocument {
  readonly text: string;
  readonly root: JsonNode;
  #lineStarts: number[] | undefined;

  constructor(text: string, root: JsonNode) {
    this.text = text;
    this.root = root;
  }

  /** Line and column of an offset. */
  position(offset: number): Position {
    this.#lineStarts ??= findLineStarts(this.text);
    return positionIn(this.text, this.#lineStarts, offset);
  }

  /**
   * The node at a path, undefined when there is none. Keys match in any case and the last of several wins, as in
   * Go's `encoding/json`.
   */
  find(path: JsonPath): JsonNode | undefined {
    let node: JsonNode | undefined = this.root;
    for (const step of path) {
      if (node?.kind === "array") node = typeof step === "number" ? node.items[step] : undefined;
      else if (node?.kind === "object") node = lastMember(node, String(step))?.value;
      else return undefined;
    }
    return node;
  }

  /** Where the value at a path stands and what was written there; undefined when there is none. */
  locate(path: JsonPath): (Position & { readonly raw: string }) | undefined {
    const node = this.find(path);
    return node && { ...this.position(node.start), raw: this.raw(node) };
  }

  /** The text of a node exactly as written. */
  raw(node: JsonNode): string {
    return this.text.slice(node.start, node.end);
  }
}

/** The last member whose key equals `name` in any case, the one Go would end up with. */
export function lastMember(object: JsonObject, name: string): JsonMember | undefined {
  const folded = foldName(name);
  return object.members.findLast((member) => foldName(member.key) === folded);
}

/**
 * A key name for comparison in any case, as Go's `encoding/json` folds it: letters by their simple case folding,
 * which makes the Kelvin sign a `k` and the long s an `s`.
 */
export function foldName(name: string): string {
  return name.toLowerCase().replaceAll("\u017f", "s");
}

/** The plain value of a node. Of equal keys the last one wins; `__proto__` is a key like any other. */
export function toValue(node: JsonNode): unknown {
  switch (node.kind) {
    case "object":
      return Object.fromEntries(node.members.map((member) => [member.key, toValue(member.value)]));
    case "array":
      return node.items.map(toValue);
    case "null":
      return null;
    default:
      return node.value;
  }
}

/** Offsets at which the lines of a text begin. */
export function findLineStarts(text: string): number[] {
  const starts = [0];
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  return starts;
}

/** Line and column of an offset, given the line starts. A byte order mark takes no column. */
export function positionIn(text: string, lineStarts: readonly number[], offset: number): Position {
  let low = 0;
  let high = lineStarts.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((lineStarts[middle] ?? 0) <= offset) low = middle;
    else high = middle - 1;
  }
  const before = text.slice(lineStarts[low] ?? 0, offset);
  const characters = countCharacters(before) - (low === 0 && before.startsWith("\ufeff") ? 1 : 0);
  return { line: low + 1, column: characters + 1 };
}

function countCharacters(text: string): number {
  let count = 0;
  for (const _ of text) count++;
  return count;
}
