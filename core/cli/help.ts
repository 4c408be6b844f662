import { COMMAND_NAMES, COMMANDS, type Command, type OwnFlag } from "./commands-table.ts";
import { environmentName, type FlagGroup, type FlagName, flagSpec, GROUP_TITLES } from "./flag-table.ts";

const WIDTH = 100;

/** The help of a command, wrapped to 100 columns; of `run` and `help`, the whole help. */
export function renderHelp(command: Command): string {
  const isWhole = command === "run" || command === "help";
  const sections = isWhole ? wholeHelp() : commandHelp(command);
  return `${sections.join("\n\n")}\n`;
}

function wholeHelp(): string[] {
  return [
    "Usage: flanneld [run] [FLAG]…\n       flanneld COMMAND [ARGUMENT]…",
    wrap("Gives this host a subnet of the cluster network and connects it with the others.", ""),
    ["Commands:", ...COMMAND_NAMES.map(commandLine)].join("\n"),
    wrap(
      "Flags take one or two dashes, -name=value or -name value; switches only -name or -name=false. " +
        "Every flag can be set by its environment variable; the command line wins. " +
        "From the environment, a flag that may be repeated gets one value.",
      "",
    ),
    ...flagSections(COMMANDS.run.flags),
  ];
}

function commandHelp(command: Command): string[] {
  const { words, usage, summary, flags, hasOutput, own } = COMMANDS[command];
  const output = `  -o text|json\n${wrap("Form of the output. Default: text.", "      ")}`;
  return [
    `Usage: flanneld ${words.join(" ")} ${usage}`.trimEnd(),
    wrap(summary, ""),
    ...(hasOutput ? [`Output:\n${output}`] : []),
    ...(own ? [["This command:", ...Object.entries(own).map(ownEntry)].join("\n")] : []),
    ...flagSections(flags),
  ];
}

function ownEntry([name, { placeholder, help }]: readonly [string, OwnFlag]): string {
  return `${`  --${name} ${placeholder}`.trimEnd()}\n${wrap(help, "      ")}`;
}

function commandLine(command: Command): string {
  const { words, usage, summary } = COMMANDS[command];
  return `  ${`${words.join(" ")} ${usage}`.trimEnd()}\n${wrap(summary, "      ")}`;
}

function flagSections(names: readonly FlagName[]): string[] {
  const groups = Object.keys(GROUP_TITLES) as FlagGroup[];
  return groups.flatMap((group) => {
    const flags = names.filter((name) => flagSpec(name).group === group);
    return flags.length === 0 ? [] : [[`${GROUP_TITLES[group]}:`, ...flags.map(flagEntry)].join("\n")];
  });
}

function flagEntry(name: FlagName): string {
  const { type, help, initial, initialText, noEnvironment } = flagSpec(name);
  const head = `  --${name}${type.placeholder === "" ? "" : ` ${type.placeholder}`}`;
  const shown = initialText ?? initial;
  const notes = [
    help,
    type.repeats ? "May be repeated." : "",
    shown === undefined ? "" : `Default: ${shown}.`,
    noEnvironment ? "" : `Environment: ${environmentName(name)}.`,
  ];
  return `${head}\n${wrap(notes.filter((note) => note !== "").join(" "), "      ")}`;
}

/** Breaks a text at blanks into lines of at most 100 columns, all beginning with `indent`. */
function wrap(text: string, indent: string): string {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && indent.length + line.length + 1 + word.length > WIDTH) {
      lines.push(indent + line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  lines.push(indent + line);
  return lines.join("\n");
}
