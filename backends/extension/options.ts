import * as v from "valibot";

/** Longest time one command may have, s. A sync has 300 s in all (plugin.json), see `SYNC_BUDGET_MS`. */
const LONGEST_TIMEOUT_S = 120;
/** Least MTU of IPv6 (RFC 8200 §5) is 1280, of IPv4 (RFC 791) 68; below the latter nothing can be right. */
const LEAST_MTU = 68;

/** A command line; absent, null or empty means none. */
const command = (name: string) => v.nullish(v.string(`${name} must be a text: a command line`), "");

const wholeNumber = (name: string, min: number, max: number, unit: string) => {
  const message = `${name} must be a whole number from ${min} to ${max}${unit}`;
  return v.pipe(v.number(message), v.integer(message), v.minValue(min, message), v.maxValue(max, message));
};

/** The `Backend` keys of extension: upstream's commands, and ours (`ShutdownCommand`, `Shell`, `Timeout`, `MTU`). */
export const options = v.object({
  PreStartupCommand: command("PreStartupCommand"),
  PostStartupCommand: command("PostStartupCommand"),
  SubnetAddCommand: command("SubnetAddCommand"),
  SubnetRemoveCommand: command("SubnetRemoveCommand"),
  ShutdownCommand: command("ShutdownCommand"),
  /** Whether commands are shell text; else they are split at white space and run as they are. */
  Shell: v.nullish(v.boolean("Shell must be true or false"), true),
  /** Longest run time of a command, s. */
  Timeout: v.nullish(wholeNumber("Timeout", 1, LONGEST_TIMEOUT_S, " seconds"), 30),
  /** MTU for pods; 0 takes that of the external interface. */
  MTU: v.nullish(
    v.union(
      [v.literal(0), wholeNumber("MTU", LEAST_MTU, 65535, "")],
      `MTU must be 0 (that of the interface) or a whole number from ${LEAST_MTU} to 65535`,
    ),
    0,
  ),
});

export type Options = v.InferOutput<typeof options>;

/** The keys that hold commands. */
export type CommandName =
  | "PreStartupCommand"
  | "PostStartupCommand"
  | "SubnetAddCommand"
  | "SubnetRemoveCommand"
  | "ShutdownCommand";
