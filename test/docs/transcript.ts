/** One command of a transcript with the output that is shown for it. */
export interface Step {
  readonly command: string;
  readonly output: string;
}

/**
 * Reads a transcript: a line that begins with `$ ` is a command, what follows is its output. A command goes on in the
 * next line after a backslash.
 */
export function readTranscript(text: string): readonly Step[] {
  const steps: { command: string; output: string }[] = [];
  for (const line of text.split("\n")) {
    const last = steps.at(-1);
    if (last?.output === "" && last.command.endsWith("\\")) last.command += `\n${line}`;
    else if (line.startsWith("$ ")) steps.push({ command: line.slice(2), output: "" });
    else if (last) last.output += `${line}\n`;
    else if (line !== "") throw new Error(`a transcript begins with a command, not with: ${line}`);
  }
  return steps.map(({ command, output }) => ({ command, output: output.trimEnd() }));
}

/**
 * Whether printed output is the one shown, where `…` stands for anything within a line, a line of it alone for any
 * number of lines, and blanks at the ends of lines do not count.
 */
export function matches(shown: string, printed: string): boolean {
  const pattern = tidy(shown)
    .split("\n")
    .map((line) =>
      line.trim() === "…" ? "(?:.*\n)*?" : `${line.split("…").map(RegExp.escape).join(".*")}\n`,
    )
    .join("");
  return new RegExp(`^${pattern}$`).test(`${tidy(printed)}\n`);
}

function tidy(text: string): string {
  return text.trimEnd().replace(/[ \t]+$/gm, "");
}
