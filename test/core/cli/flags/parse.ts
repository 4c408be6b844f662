import { type CommandLine, parseCommandLine } from "../../../../core/cli/flags.ts";
import { Fault } from "../../../../core/observe/fault.ts";

/** A command line as it is understood in an environment that is otherwise empty. */
export function parse(
  argv: readonly string[],
  environment: Record<string, string | undefined> = {},
): CommandLine {
  return parseCommandLine(argv, environment);
}

/** What a command line is refused with; throws when it is not. */
export function refusal(
  argv: readonly string[],
  environment: Record<string, string | undefined> = {},
): Fault {
  try {
    parse(argv, environment);
  } catch (error) {
    if (error instanceof Fault) return error;
    throw error;
  }
  throw new Error(`accepted: ${argv.join(" ")}`);
}
