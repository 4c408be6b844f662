/** What is wrong and what to do about it. Only single characters and well-known words are shown, never values. */
export interface Explanation {
  readonly what: string;
  readonly hint: string;
}

const OTHER_LANGUAGES: Readonly<Record<string, string>> = {
  NaN: "write a finite number",
  Infinity: "write a finite number",
  undefined: "remove the key",
  None: "write null or remove the key",
  nil: "write null or remove the key",
  NULL: "write null or remove the key",
  Null: "write null or remove the key",
  True: "write true",
  TRUE: "write true",
  yes: "write true",
  on: "write true",
  False: "write false",
  FALSE: "write false",
  no: "write false",
  off: "write false",
};

/** Explains a bare word that is not `true`, `false` or `null`. */
export function explainWord(word: string): Explanation {
  const hint = Object.hasOwn(OTHER_LANGUAGES, word) ? OTHER_LANGUAGES[word] : undefined;
  if (hint) return { what: `${word} is not JSON`, hint };
  return { what: "text without quotes is not JSON", hint: 'put text into double quotes (")' };
}

/** Explains the character at `at` where `expected` should stand. */
export function explainCharacter(text: string, at: number, expected: string): Explanation {
  const character = String.fromCodePoint(text.codePointAt(at) ?? 0);
  const rest = text.slice(at, at + 2);
  if (character === "'" || character === "`") {
    return { what: `${character} is no quote in JSON`, hint: 'use double quotes (")' };
  }
  if (/[\u2018-\u201f\u00ab\u00bb]/.test(character)) {
    return { what: `${character} is a typographic quote`, hint: 'use plain double quotes (")' };
  }
  if (rest === "//" || rest === "/*" || character === "#") {
    return { what: "comments are not JSON", hint: "remove the comment" };
  }
  if (/[\s\ufeff\u200b\u2060]/u.test(character)) {
    return { what: `${codePoint(character)} is no white space in JSON`, hint: "replace it by a plain space" };
  }
  return { what: `unexpected ${show(character)}, expected ${expected}`, hint: `put ${expected} here` };
}

function show(character: string): string {
  return /[\p{L}\p{N}\p{P}\p{S}]/u.test(character) ? JSON.stringify(character) : codePoint(character);
}

function codePoint(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
}
