const POSIX_CLASSES: Readonly<Record<string, string>> = {
  alnum: "0-9A-Za-z",
  alpha: "A-Za-z",
  digit: "0-9",
  lower: "a-z",
  upper: "A-Z",
  punct: "!-\\/:-@\\[-`{-~",
  space: "\\t\\n\\v\\f\\r ",
  word: "0-9A-Za-z_",
  xdigit: "0-9A-Fa-f",
};

/**
 * A regular expression written for Go (RE2) as one of ours, unanchored: leading flags `(?i)`, named groups
 * `(?P<n>…)`, POSIX classes `[[:digit:]]`, `\A` and `\z` are translated. Where RE2 knows less, more is accepted.
 * @throws SyntaxError when it is no regular expression.
 */
export function compileGoRegex(text: string): RegExp {
  const [head = "", flags = ""] = /^\(\?([ims]+)\)/.exec(text) ?? [];
  const body = text
    .slice(head.length)
    .replaceAll("(?P<", "(?<")
    .replaceAll(/\[:(\w+):\]/g, (whole, name: string) => POSIX_CLASSES[name] ?? whole)
    .replaceAll(/\\(.)/g, (whole, character: string) => {
      if (character === "A") return "(?<![\\s\\S])";
      return character === "z" ? "(?![\\s\\S])" : whole;
    });
  return new RegExp(body, [...new Set(flags)].join(""));
}
