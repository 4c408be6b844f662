import { Fault } from "../observe/fault.ts";
import { explainCharacter, explainWord } from "./json-mistakes.ts";
import { findLineStarts, JsonDocument, type JsonMember, type JsonNode, positionIn } from "./json-tree.ts";

/** etcd's default `--max-request-bytes`: no larger config can be stored, and none is meant. */
export const MAX_JSON_BYTES = 1_572_864;

/** Nesting beyond this is no config; the limit keeps recursion bounded. */
export const MAX_JSON_DEPTH = 64;

/**
 * Reads strict JSON (RFC 8259; a byte order mark is skipped) and keeps all positions. `source` heads the messages.
 * @throws Fault `code`, `<source>:<line>:<column>: …`, on any syntax error, above 1.5 MiB or 64 levels of nesting.
 */
export function readJson(text: string, source: string, code = "CONFIG_INVALID"): JsonDocument {
  const bytes = Buffer.byteLength(text);
  if (bytes > MAX_JSON_BYTES) {
    throw new Fault(code, `${source}: ${bytes} bytes are too many, at most ${MAX_JSON_BYTES} are read`, {
      hint: "store the network config alone under this key or file",
    });
  }
  try {
    return new JsonDocument(text, new Parser(text).parse());
  } catch (error) {
    if (!(error instanceof Mistake)) throw error;
    const { line, column } = positionIn(text, findLineStarts(text), error.offset);
    throw new Fault(code, `${source}:${line}:${column}: ${error.what}`, { hint: error.hint });
  }
}

/** A syntax error on its way out of the parser; never leaves this file. */
class Mistake {
  constructor(
    readonly offset: number,
    readonly what: string,
    readonly hint: string,
  ) {}
}

const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const NUMBER_LIKE = /[-+.0-9][-+.0-9a-zA-Z_]*/y;
const WORD = /[\p{L}_$][\p{L}\p{N}_$]*/uy;

class Parser {
  readonly #text: string;
  #at = 0;
  #depth = 0;

  constructor(text: string) {
    this.#text = text;
    if (text.startsWith("\ufeff")) this.#at = 1;
  }

  parse(): JsonNode {
    this.#skipSpace();
    if (this.#at === this.#text.length) {
      throw new Mistake(this.#at, "the document is empty", "write a JSON object");
    }
    const root = this.#value("a value");
    this.#skipSpace();
    if (this.#at < this.#text.length) {
      throw new Mistake(
        this.#at,
        "text after the end of the JSON value",
        "remove it, or what closes the value too early",
      );
    }
    return root;
  }

  #value(expected: string): JsonNode {
    const start = this.#at;
    switch (this.#text[start]) {
      case "{":
        return this.#nested(() => this.#object());
      case "[":
        return this.#nested(() => this.#array());
      case '"':
        return { kind: "string", value: this.#string(), start, end: this.#at };
      default:
        return this.#number() ?? this.#word() ?? this.#fail(expected);
    }
  }

  #nested(read: () => JsonNode): JsonNode {
    if (++this.#depth > MAX_JSON_DEPTH) {
      throw new Mistake(
        this.#at,
        `nested deeper than ${MAX_JSON_DEPTH} levels`,
        "a network config has two levels",
      );
    }
    const node = read();
    this.#depth--;
    return node;
  }

  #object(): JsonNode {
    const start = this.#at++;
    const members: JsonMember[] = [];
    for (;;) {
      this.#skipSpace();
      if (this.#text[this.#at] === "}") {
        this.#refuseTrailingComma(members.length > 0, "}");
        break;
      }
      const keyStart = this.#at;
      if (this.#text[keyStart] !== '"') this.#failIn(start, 'a key in double quotes or "}"');
      const key = this.#string();
      this.#skipSpace();
      if (this.#text[this.#at] !== ":") this.#failIn(start, '":" after the key');
      this.#at++;
      this.#skipSpace();
      members.push({ key, keyStart, value: this.#value(`a value for ${JSON.stringify(key.slice(0, 64))}`) });
      if (!this.#comma(start, "}")) break;
    }
    return { kind: "object", members, start, end: ++this.#at };
  }

  #array(): JsonNode {
    const start = this.#at++;
    const items: JsonNode[] = [];
    for (;;) {
      this.#skipSpace();
      if (this.#text[this.#at] === "]") {
        this.#refuseTrailingComma(items.length > 0, "]");
        break;
      }
      if (this.#at === this.#text.length) this.#failIn(start, '"]"');
      items.push(this.#value('a value or "]"'));
      if (!this.#comma(start, "]")) break;
    }
    return { kind: "array", items, start, end: ++this.#at };
  }

  /** Reads what stands after a value: true for a comma, false (unread) for the closing bracket. */
  #comma(opened: number, close: string): boolean {
    this.#skipSpace();
    const character = this.#text[this.#at];
    if (character === close) return false;
    if (character !== ",") this.#failIn(opened, `"," or "${close}"`);
    this.#at++;
    return true;
  }

  /** Coming back for another item and meeting the bracket means that a comma stood before it. */
  #refuseTrailingComma(afterComma: boolean, close: string): void {
    if (!afterComma) return;
    const comma = this.#text.lastIndexOf(",", this.#at);
    throw new Mistake(comma, `"," before "${close}"`, "remove the trailing comma");
  }

  #string(): string {
    const start = this.#at++;
    for (;;) {
      const code = this.#text.charCodeAt(this.#at);
      if (Number.isNaN(code) || code === 10 || code === 13) {
        throw new Mistake(start, "the string that starts here is not closed", 'add the closing quote (")');
      }
      if (code === 34) break;
      if (code < 32) {
        const name = `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
        throw new Mistake(
          this.#at,
          `control character ${name} in a string`,
          "write it as an escape, a tab as \\t",
        );
      }
      if (code === 92) this.#escape();
      else this.#at++;
    }
    const lexeme = this.#text.slice(start, ++this.#at);
    // Go replaces half surrogate pairs as well.
    return String(JSON.parse(lexeme)).toWellFormed();
  }

  #escape(): void {
    const next = this.#text[this.#at + 1] ?? "";
    const length = next === "u" ? 6 : 2;
    const sequence = this.#text.slice(this.#at, this.#at + length);
    if (!/^\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})$/.test(sequence)) {
      throw new Mistake(
        this.#at,
        "this escape is not JSON",
        'legal are \\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX',
      );
    }
    this.#at += length;
  }

  #number(): JsonNode | undefined {
    const start = this.#at;
    const written = this.#match(NUMBER_LIKE);
    if (written === undefined) return undefined;
    const literal = this.#match(NUMBER);
    if (written !== literal) {
      throw new Mistake(
        start,
        "this number is not JSON",
        'write plain decimal digits, or put text into double quotes (")',
      );
    }
    this.#at += written.length;
    return { kind: "number", value: Number(written), start, end: this.#at };
  }

  #word(): JsonNode | undefined {
    const start = this.#at;
    const word = this.#match(WORD);
    if (word === undefined) return undefined;
    const end = start + word.length;
    if (word !== "true" && word !== "false" && word !== "null") {
      const { what, hint } = explainWord(word);
      throw new Mistake(start, what, hint);
    }
    this.#at = end;
    return word === "null"
      ? { kind: "null", start, end }
      : { kind: "boolean", value: word === "true", start, end };
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    return pattern.exec(this.#text)?.[0];
  }

  #skipSpace(): void {
    for (;;) {
      const code = this.#text.charCodeAt(this.#at);
      if (code !== 32 && code !== 10 && code !== 13 && code !== 9) return;
      this.#at++;
    }
  }

  /** Refuses what stands here inside a bracket, which is named when the text simply ends. */
  #failIn(opened: number, expected: string): never {
    if (this.#at < this.#text.length) this.#fail(expected);
    const { line, column } = positionIn(this.#text, findLineStarts(this.#text), opened);
    const bracket = this.#text[opened];
    throw new Mistake(
      this.#at,
      `the document ends here, "${bracket}" of ${line}:${column} is not closed`,
      `add ${expected}`,
    );
  }

  #fail(expected: string): never {
    if (this.#at === this.#text.length) {
      throw new Mistake(this.#at, `the document ends here, expected ${expected}`, "complete the document");
    }
    const { what, hint } = explainCharacter(this.#text, this.#at, expected);
    throw new Mistake(this.#at, what, hint);
  }
}
