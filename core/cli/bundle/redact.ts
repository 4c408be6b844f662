/** Names of settings whose values are secret, in whatever document they stand. */
const SECRET_NAME = /pass(?:word|phrase)?|psk|secret|token|private_?key|credential/i;

/** What stands for a secret. */
export const REDACTED = "[redacted]";

/** Shorter ones are replaced under their names only: anywhere else they would be found by chance. */
const SHORTEST = 4;

/** Takes secrets out of texts: known values wherever they stand, and values under names that tell. */
export class Redactor {
  readonly #values: readonly string[];

  /** `values`: secrets that are known, e.g. a password given by flag. */
  constructor(values: Iterable<string>) {
    // Longer ones first, so that no rest of one stays where another is a part of it.
    this.#values = [
      ...new Set([...values].filter((value) => value.length >= SHORTEST).flatMap(spellings)),
    ].sort((a, b) => b.length - a.length);
  }

  /** The text without secrets. */
  clean(text: string): string {
    let clean = text;
    for (const value of this.#values) clean = clean.replaceAll(value, REDACTED);
    return clean
      .replace(/("([^"\\]|\\.)*"\s*:\s*)(?:"(?:[^"\\]|\\.)*"|-?\d[\w.+-]*)/g, (pair, name: string) =>
        SECRET_NAME.test(name) ? `${name}"${REDACTED}"` : pair,
      )
      .replace(/\b([\w-]*(?:password|psk|secret|token)[\w-]*=)[^\s&"']+/gi, `$1${REDACTED}`)
      .replace(/(\b[a-z][a-z0-9+.-]*:\/\/)[^\s/@"']+@/gi, `$1${REDACTED}@`);
  }
}

/** A secret as it stands in plain text, JSON, URLs and base64. */
function spellings(value: string): readonly string[] {
  return [
    value,
    JSON.stringify(value).slice(1, -1),
    encodeURIComponent(value),
    Buffer.from(value).toString("base64"),
  ];
}

/** A document with its secrets replaced, and what they were. */
export interface Cleaned {
  readonly document: unknown;
  readonly secrets: readonly string[];
}

/**
 * Takes the texts and numbers under secret names out of a JSON document, and those under the given names (option paths
 * of plugins, in any case).
 */
export function cleanDocument(document: unknown, names: readonly string[] = []): Cleaned {
  const wanted = new Set(names.map((name) => name.toLowerCase().split(".").at(-1)));
  const secrets: string[] = [];
  const visit = (value: unknown, secret: boolean): unknown => {
    if (Array.isArray(value)) return value.map((inner) => visit(inner, secret));
    if (typeof value === "object" && value !== null) {
      const entries = Object.entries(value).map(([key, inner]) => {
        const isSecret = secret || SECRET_NAME.test(key) || wanted.has(key.toLowerCase());
        return [key, visit(inner, isSecret)] as const;
      });
      return Object.fromEntries(entries);
    }
    if (!secret || (typeof value !== "string" && typeof value !== "number")) return value;
    secrets.push(String(value));
    return REDACTED;
  };
  return { document: visit(document, false), secrets };
}
