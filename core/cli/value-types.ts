import { compileGoRegex } from "../config/regex.ts";
import { addressFamily, canonicalAddress } from "../net/prefix.ts";
import { describeError } from "../observe/fault.ts";
import { parseDuration } from "./duration.ts";

/** How the text of a flag becomes a value. */
export interface ValueType<Value> {
  /** Stands for the value in the help; empty for switches, which take none. */
  readonly placeholder: string;
  /** `-name` alone means true; a value must be attached with `=`. */
  readonly isSwitch?: true;
  /** May be given several times; the value is a list. */
  readonly repeats?: true;
  /** The value is milliseconds. */
  readonly isTime?: true;
  /**
   * The value of all texts given, the last one counting unless it repeats; of none, what the default is.
   * @throws BadValue
   */
  read(texts: readonly string[]): Value;
}

/** Why a text is no value: goes on after the flag and the value. Never shown for secrets. */
export class BadValue extends Error {}

function single<Value>(placeholder: string, read: (text: string) => Value): ValueType<Value> {
  return { placeholder, read: (texts) => read(texts.at(-1) ?? "") };
}

/** A type whose empty text means "not given". */
function optional<Value>(type: ValueType<Value>): ValueType<Value | undefined> {
  return { ...type, read: (texts) => ((texts.at(-1) ?? "") === "" ? undefined : type.read(texts)) };
}

const TRUE = ["1", "t", "T", "true", "TRUE", "True"];
const FALSE = ["0", "f", "F", "false", "FALSE", "False"];

/** Go's `strconv.ParseBool`. */
export const flag: ValueType<boolean> = {
  placeholder: "",
  isSwitch: true,
  read(texts) {
    const text = texts.at(-1) ?? "";
    if (TRUE.includes(text)) return true;
    if (FALSE.includes(text)) return false;
    throw new BadValue("is neither true nor false");
  },
};

/** Text that must not be empty. */
export function text(placeholder: string): ValueType<string> {
  return single(placeholder, (value) => {
    if (value === "") throw new BadValue("must not be empty");
    return value;
  });
}

/** A name that can stand in keys and logs, undefined when empty. */
export const identifier: ValueType<string | undefined> = optional(
  single("ID", (value) => {
    if (/^[A-Za-z0-9][A-Za-z0-9._:-]{0,252}$/.test(value)) return value;
    throw new BadValue("is no identifier: at most 253 letters, digits and any of . _ : - after the first");
  }),
);

/** Text, undefined when empty. */
export function optionalText(placeholder: string): ValueType<string | undefined> {
  return optional(text(placeholder));
}

/** Text given any number of times; empty elements are dropped. */
export function texts(placeholder: string): ValueType<readonly string[]> {
  return { placeholder, repeats: true, read: (given) => given.filter((each) => each !== "") };
}

/** Regular expressions in Go's syntax, see {@link compileGoRegex}; the value is their text. */
export const regexes: ValueType<readonly string[]> = {
  ...texts("REGEX"),
  read(given) {
    for (const each of given) {
      try {
        compileGoRegex(each);
      } catch (error) {
        throw new BadValue(`is no regular expression: ${describeError(error)}`);
      }
    }
    return given.filter((each) => each !== "");
  },
};

/** One of several names, written exactly so. */
export function choice<Name extends string>(...names: readonly Name[]): ValueType<Name> {
  return single(names.join("|"), (value) => {
    const found = names.find((name) => name === value);
    if (found === undefined) throw new BadValue(`is none of ${names.join(", ")}`);
    return found;
  });
}

/** Go's `strconv.ParseInt` with base 0: a sign, `0x`, `0o`, `0b`, a leading zero for octal, `_` between digits. */
export function parseGoInteger(written: string): number | undefined {
  const [, sign, body] = /^([+-]?)(\w+)$/.exec(written) ?? [];
  if (body === undefined || /__|_$|^_/.test(body)) return undefined;
  const digits = body.replaceAll("_", "").toLowerCase();
  const isOctal = /^0[0-7_]+$/.test(body);
  const isOther = /^0(?:x[0-9a-f]+|o[0-7]+|b[01]+)$/.test(digits);
  if (!isOctal && !isOther && !/^(?:0|[1-9]\d*)$/.test(digits)) return undefined;
  const value = Number(isOctal ? `0o${digits.slice(1)}` : digits);
  return Number.isSafeInteger(value) ? (sign === "-" && value !== 0 ? -value : value) : undefined;
}

/** A whole number between two bounds. */
export function integer(min: number, max: number, placeholder = "N"): ValueType<number> {
  return single(placeholder, (written) => {
    const value = parseGoInteger(written);
    if (value === undefined) throw new BadValue("is no whole number");
    if (value < min || value > max) {
      throw new BadValue(
        value < min ? `is below ${min}, the least legal value` : `is above ${max}, the largest legal value`,
      );
    }
    return value;
  });
}

/** Whole seconds, as milliseconds. */
export function seconds(min: number, max: number): ValueType<number> {
  const type = integer(min, max, "SECONDS");
  return { ...type, isTime: true, read: (given) => type.read(given) * 1000 };
}

/** A Go duration between two bounds, as milliseconds. */
export function duration(min: string, max: string): ValueType<number> {
  const [least = 0, most = 0] = [parseDuration(min), parseDuration(max)];
  const type = single("DURATION", (written) => {
    const value = parseDuration(written);
    if (value === undefined) throw new BadValue("is no duration such as 90s, 30m or 24h");
    if (value < least) throw new BadValue(`is too short; nearest legal value is ${min}`);
    if (value > most) throw new BadValue(`is too long; nearest legal value is ${max}`);
    return Math.round(value);
  });
  return { ...type, isTime: true };
}

/** Whole minutes (1..1439) as upstream has them, or a Go duration of at least a second; as milliseconds. */
export const margin: ValueType<number> = {
  placeholder: "MINUTES|DURATION",
  isTime: true,
  read(given) {
    const isMinutes = parseGoInteger(given.at(-1) ?? "") !== undefined;
    return isMinutes ? integer(1, 1439).read(given) * 60_000 : duration("1s", "23h59m").read(given);
  },
};

/** An address of one family in its canonical form, undefined when empty. */
export function address(family: 4 | 6): ValueType<string | undefined> {
  return optional(
    single(family === 4 ? "IPV4" : "IPV6", (written) => {
      const canonical = canonicalAddress(written);
      if (canonical === undefined || addressFamily(written) !== family) {
        throw new BadValue(`is no IPv${family} address`);
      }
      return canonical;
    }),
  );
}

/** An address of either family in its canonical form, undefined when empty. */
export const anyAddress: ValueType<string | undefined> = optional(
  single("IP", (written) => {
    const canonical = canonicalAddress(written);
    if (canonical === undefined) throw new BadValue("is no IP address");
    return canonical;
  }),
);

/** An http or https URL without credentials, undefined when empty. */
export const url: ValueType<string | undefined> = optional(
  single("URL", (written) => {
    refuseCredentials(written);
    readUrl(written);
    return written;
  }),
);

/** A comma list of `http(s)://host[:port]`; blanks around and empty elements are dropped. */
export const endpoints: ValueType<readonly string[]> = single("URL[,URL…]", (written) => {
  refuseCredentials(written);
  const given = written.split(",").map((each) => each.trim());
  return given.filter((each) => each !== "").map(readEndpoint);
});

function readEndpoint(written: string): string {
  const { pathname, search, hash, origin } = readUrl(written);
  if (pathname === "/" && search === "" && hash === "") return written.replace(/\/+$/, "");
  throw new BadValue(`has a path in a URL; write only ${origin}`);
}

function readUrl(written: string): URL {
  const isHttp = /^https?:\/\/[^/\\\s]/i.test(written);
  if (isHttp && URL.canParse(written)) return new URL(written);
  throw new BadValue("has an element that is no URL of the form http(s)://host[:port]");
}

/** Refuses any `@`, also of what is no URL: what stands before it may be a password. */
function refuseCredentials(written: string): void {
  if (written.includes("@")) throw new BadCredentials("has credentials in a URL");
}

/** A bad value that may be a secret itself: it must not be shown. */
export class BadCredentials extends BadValue {}
