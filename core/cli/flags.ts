import { Fault } from "../observe/fault.ts";
import { type Arguments, splitArguments } from "./arguments.ts";
import { COMMANDS, type Command } from "./commands-table.ts";
import { type Environment, readEnvironment } from "./environment.ts";
import type { FlagName } from "./flag-table.ts";
import { buildOptions, type Options } from "./options.ts";
import { BadValue, flag } from "./value-types.ts";

export type { Command } from "./commands-table.ts";
export { renderHelp } from "./help.ts";
export { describeOptions, type Options } from "./options.ts";

/** The flags that only one command has. */
export interface OwnFlags {
  /** Whether a switch is on. */
  has(name: string): boolean;
  /** Text of a flag with a value, undefined when not given. */
  get(name: string): string | undefined;
}

/** What the operator asked for. */
export interface CommandLine {
  readonly command: Command;
  /** For `help` and `version` the defaults: neither flags nor environment can keep them from answering. */
  readonly options: Options;
  /** Flags given on the command line or by the environment. */
  readonly explicit: ReadonlySet<string>;
  readonly warnings: readonly string[];
  /** The argument of the command, empty when it was left out (`config-check`: the file, `-` for standard input). */
  readonly operand: string;
  /** Flags of the command alone, see commands-table.ts. */
  readonly own: OwnFlags;
  /** Form of the output, of commands that have `-o`. */
  readonly output: "text" | "json";
  /** `help`: the command to explain. */
  readonly topic: Command;
}

/**
 * Reads a command line (without the program name) and the environment.
 * @throws Fault `COMMAND_UNKNOWN`, `FLAG_UNKNOWN` (both with a "did you mean") or `FLAG_INVALID` (a bad or missing
 * value, of a flag or a variable; all that are found at once are its `others`). Secrets are in no message.
 */
export function parseCommandLine(argv: readonly string[], environment: Environment): CommandLine {
  const parts = splitArguments(argv);
  const common = {
    operand: parts.operand ?? "",
    own: readOwn(parts),
    output: readOutput(parts),
    topic: parts.topic ?? "run",
  } as const;
  if (parts.command === "help" || parts.command === "version" || wantsVersion(parts)) {
    const { options } = buildOptions({ commandLine: new Map(), environment: new Map() });
    const command = parts.command === "help" ? "help" : "version";
    return { ...common, command, options, explicit: new Set(), warnings: [] };
  }
  const variables = readEnvironment(environment);
  const { options, warnings } = buildOptions({ commandLine: parts.given, environment: variables.given });
  return {
    command: parts.command,
    options,
    explicit: new Set<FlagName>([...parts.given.keys(), ...variables.given.keys()]),
    warnings: [...variables.warnings, ...warnings],
    ...common,
  };
}

/** `-version` answers before the environment and other values are looked at. */
function wantsVersion({ given }: Arguments): boolean {
  const texts = given.get("version");
  if (!texts) return false;
  return buildOptions({ commandLine: new Map([["version", texts]]), environment: new Map() }).options.version;
}

function readOwn({ command, own }: Arguments): OwnFlags {
  const switches = new Map<string, boolean>();
  for (const [name, text] of own) {
    if (COMMANDS[command].own?.[name]?.placeholder !== "") continue;
    try {
      switches.set(name, flag.read([text]));
    } catch (error) {
      if (!(error instanceof BadValue)) throw error;
      const hint = `write -${name} or -${name}=false`;
      throw new Fault(
        "FLAG_INVALID",
        `flag -${name}: ${JSON.stringify(text.slice(0, 64))} ${error.message}`,
        { hint },
      );
    }
  }
  return { has: (name) => switches.get(name) === true, get: (name) => own.get(name) };
}

function readOutput({ output = "text" }: Arguments): "text" | "json" {
  if (output === "text" || output === "json") return output;
  throw new Fault("FLAG_INVALID", `flag -o: ${JSON.stringify(output.slice(0, 64))} is none of text, json`, {
    hint: "write -o json",
  });
}
