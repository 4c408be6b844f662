/**
 * Text that others wrote (node ids, keys, kernel messages), fit for a terminal: it must not obey it, nor may one line
 * become two. Control characters become `\u001b` and the like.
 */
export function escapeControls(text: string): string {
  return text.replace(CONTROLS, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** C0, DEL and C1 control characters (ECMA-48), and Unicode's line separators and direction marks. */
const CONTROLS = /[\p{Cc}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;
