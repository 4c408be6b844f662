import { nearestName } from "../config/nearest.ts";
import { Fault } from "../observe/fault.ts";
import { COMMAND_NAMES, COMMANDS, type Command } from "./commands-table.ts";
import { FLAG_NAMES, type FlagName, flagSpec, isFlagName } from "./flag-table.ts";

/** The command line taken apart, values still text. */
export interface Arguments {
  readonly command: Command;
  /** All texts given per flag, in order. */
  readonly given: ReadonlyMap<FlagName, readonly string[]>;
  /** Text of each flag that the command alone has; a switch is `true` or as written. */
  readonly own: ReadonlyMap<string, string>;
  /** The argument of a command that takes one. */
  readonly operand?: string;
  /** Text of `-o`. */
  readonly output?: string;
  /** The command that help is wanted for. */
  readonly topic?: Command;
}

/**
 * Takes a command line (without the program name) apart: a command, then flags in Go's syntax: one or two dashes,
 * `-name=value` or `-name value`, switches only `-name` or `-name=bool`, `--` ends the flags.
 * @throws Fault `COMMAND_UNKNOWN`, `FLAG_UNKNOWN` or `FLAG_INVALID`; values are not looked at.
 */
export function splitArguments(argv: readonly string[]): Arguments {
  const { command, length } = findCommand(argv);
  if (command === "help") return { ...nothing(command), ...findTopic(argv.slice(length)) };
  return new Scanner(command, argv.slice(length)).scan();
}

function findCommand(argv: readonly string[]): { command: Command; length: number } {
  const word = argv[0];
  if (word === undefined || word === "-" || word.startsWith("-")) return { command: "run", length: 0 };
  const command = COMMAND_NAMES.find((name) => COMMANDS[name].words.every((each, at) => argv[at] === each));
  if (command) return { command, length: COMMANDS[command].words.length };
  const longer = COMMAND_NAMES.find((name) => COMMANDS[name].words[0] === word);
  if (longer) return refuseHalf(longer, argv);
  throw unknownCommand(word);
}

/** `config`, but not `config check`; `config -h` still deserves help. */
function refuseHalf(command: Command, argv: readonly string[]): { command: Command; length: number } {
  if (argv.slice(1).some(isHelp)) return { command, length: 1 };
  const { words, usage } = COMMANDS[command];
  const message = `command ${argv.slice(0, words.length).map(quote).join(" ")} is incomplete or unknown`;
  throw new Fault("COMMAND_UNKNOWN", message, { hint: `write flanneld ${words.join(" ")} ${usage}` });
}

function unknownCommand(word: string): Fault {
  const names = COMMAND_NAMES.map((name) => COMMANDS[name].words.join(" "));
  const meant = nearestName(word, names);
  const hint = meant ? `did you mean ${meant}?` : `commands are ${names.join(", ")}`;
  return new Fault("COMMAND_UNKNOWN", `command ${quote(word)} is unknown`, { hint });
}

function nothing(command: Command): Arguments {
  return { command, given: new Map(), own: new Map() };
}

function findTopic(rest: readonly string[]): { topic?: Command } {
  const words = rest.filter((each) => !isHelp(each));
  const first = words[0];
  if (first === undefined) return {};
  const topics = COMMAND_NAMES.filter((name) => COMMANDS[name].words[0] === first);
  const topic = topics.find((name) => COMMANDS[name].words[1] === words[1]) ?? topics[0];
  if (!topic) throw unknownCommand(first);
  return { topic };
}

function isHelp(argument: string): boolean {
  return /^--?(?:h|help)$/.test(argument);
}

function quote(text: string): string {
  return JSON.stringify(text.length > 64 ? `${text.slice(0, 64).toWellFormed()}…` : text);
}

class Scanner {
  readonly #command: Command;
  readonly #argv: readonly string[];
  readonly #given = new Map<FlagName, string[]>();
  readonly #own = new Map<string, string>();
  #at = 0;
  #lastFlag = "";
  #operand: string | undefined;
  #output: string | undefined;

  constructor(command: Command, argv: readonly string[]) {
    this.#command = command;
    this.#argv = argv;
  }

  scan(): Arguments {
    let flagsEnded = false;
    while (this.#at < this.#argv.length) {
      const argument = this.#argv[this.#at++] ?? "";
      if (flagsEnded || argument === "-" || !argument.startsWith("-")) this.#takeOperand(argument);
      else if (argument === "--") flagsEnded = true;
      else if (isHelp(argument)) return { ...nothing("help"), topic: this.#command };
      else this.#takeFlag(argument);
    }
    const { operand, operandOptional } = COMMANDS[this.#command];
    if (operand && !operandOptional && this.#operand === undefined && !this.#given.has("version")) {
      throw new Fault("FLAG_INVALID", `argument ${operand} is missing`, { hint: usageOf(this.#command) });
    }
    return {
      command: this.#command,
      given: this.#given,
      own: this.#own,
      ...(this.#operand === undefined ? {} : { operand: this.#operand }),
      ...(this.#output === undefined ? {} : { output: this.#output }),
    };
  }

  #takeFlag(argument: string): void {
    const body = argument.replace(/^--?/, "");
    const equals = body.indexOf("=");
    const name = equals < 0 ? body : body.slice(0, equals);
    const attached = equals < 0 ? undefined : body.slice(equals + 1);
    if (name === "" || name.startsWith("-")) {
      throw new Fault("FLAG_INVALID", "an argument begins like a flag but has no name", { hint: FLAG_FORM });
    }
    this.#lastFlag = name;
    if (name === "o" && COMMANDS[this.#command].hasOutput) {
      this.#output = attached ?? this.#next(name);
      return;
    }
    const own = COMMANDS[this.#command].own?.[name];
    if (own) {
      this.#own.set(name, attached ?? (own.placeholder === "" ? "true" : this.#next(name)));
      return;
    }
    if (!isFlagName(name)) throw unknownFlag(name, Object.keys(COMMANDS[this.#command].own ?? {}));
    const value = attached ?? (flagSpec(name).type.isSwitch ? "true" : this.#next(name));
    const values = this.#given.get(name) ?? [];
    values.push(value);
    this.#given.set(name, values);
  }

  #next(name: string): string {
    const value = this.#argv[this.#at++];
    if (value !== undefined) return value;
    throw new Fault("FLAG_INVALID", `flag -${name} needs a value`, { hint: `write -${name}=VALUE` });
  }

  #takeOperand(argument: string): void {
    if (COMMANDS[this.#command].operand && this.#operand === undefined) {
      this.#operand = argument;
      return;
    }
    throw this.#stray(argument);
  }

  #stray(argument: string): Fault {
    const flag = isFlagName(this.#lastFlag) ? flagSpec(this.#lastFlag) : undefined;
    // It may be the rest of a password with a blank in it.
    const shown = flag?.secret ? `after -${this.#lastFlag}` : quote(argument);
    let hint = usageOf(this.#command);
    if (flag?.type.isSwitch) hint = `a value of a switch is attached: -${this.#lastFlag}=false`;
    else if (flag?.secret) hint = "put quotes around a value with blanks";
    else if (COMMAND_NAMES.some((name) => COMMANDS[name].words[0] === argument)) {
      hint = `the command comes first: flanneld ${argument} [FLAG]…`;
    }
    return new Fault("FLAG_INVALID", `argument ${shown} is stray`, { hint });
  }
}

const FLAG_FORM = "write -name=value or -name value";

function usageOf(command: Command): string {
  const { words, usage } = COMMANDS[command];
  return `usage: flanneld ${words.join(" ")} ${usage}`.trimEnd();
}

function unknownFlag(name: string, own: readonly string[]): Fault {
  const meant = nearestName(name, [...own, ...FLAG_NAMES]);
  const hint = meant ? `did you mean -${meant}?` : "flanneld -help lists all flags";
  return new Fault("FLAG_UNKNOWN", `flag -${quote(name).slice(1, -1)} is unknown`, { hint });
}
