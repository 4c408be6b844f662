import { FLAG_NAMES, type FlagName, flagSpec } from "./flag-table.ts";

export type Command = "run" | "backends" | "config-check" | "version" | "help";

export interface CommandSpec {
  /** The words that call it. */
  readonly words: readonly string[];
  /** What follows the words. */
  readonly usage: string;
  readonly summary: string;
  /** Flags that act in it; the others are accepted everywhere, so that one set of flags fits all commands. */
  readonly flags: readonly FlagName[];
  /** Name of the one argument it takes. */
  readonly operand?: string;
  /** Whether it knows `-o text|json`. */
  readonly hasOutput?: true;
}

const PLUGIN_FLAGS = FLAG_NAMES.filter((name) => flagSpec(name).group === "plugins");

export const COMMANDS: Readonly<Record<Command, CommandSpec>> = {
  run: {
    words: ["run"],
    usage: "[FLAG]…",
    summary: "Run the daemon; what happens without a command.",
    flags: FLAG_NAMES,
  },
  backends: {
    words: ["backends"],
    usage: "[-o text|json] [FLAG]…",
    summary: "List the backends this daemon has, each with its state and the reason for it.",
    flags: PLUGIN_FLAGS,
    hasOutput: true,
  },
  "config-check": {
    words: ["config", "check"],
    usage: "FILE|- [FLAG]…",
    summary: "Check a network config as the daemon would; - is standard input.",
    flags: PLUGIN_FLAGS,
    operand: "FILE",
  },
  version: { words: ["version"], usage: "", summary: "Print the version.", flags: [] },
  help: { words: ["help"], usage: "[COMMAND]", summary: "Explain a command.", flags: [] },
};

export const COMMAND_NAMES = Object.keys(COMMANDS) as readonly Command[];
