import type { Environment } from "./environment.ts";

/** `${NAME}` or `$NAME`. */
const VARIABLE = /\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))/g;

/**
 * The words of a command that no shell reads: split at white space without any quoting, then `$NAME` and `${NAME}` in
 * each word replaced by the variable, or by nothing. What a variable holds is not split again, so a word stays a word.
 */
export function splitCommand(command: string, environment: Environment): readonly string[] {
  return command
    .split(/\s+/)
    .filter((word) => word !== "")
    .map((word) =>
      word.replaceAll(
        VARIABLE,
        (_, braced?: string, bare?: string) => environment[braced ?? bare ?? ""] ?? "",
      ),
    );
}
