import * as v from "valibot";
import { parseIPv4 } from "../net/ipv4.ts";
import { isIPv4Mapped, parseIPv6 } from "../net/ipv6.ts";
import { addressFamily, canonicalPrefix, type Prefix, parsePrefix } from "../net/prefix.ts";
import { MASQ_EXCLUDE_KEY } from "./masq-exclude.ts";

/** What to write instead, per key; the message itself says what is wrong. */
export const KEY_HINTS = {
  EnableIPv4: "write true or false",
  EnableIPv6: "write true or false",
  EnableNFTables: "write true or false",
  Network: 'write an IPv4 network such as "10.244.0.0/16"',
  SubnetLen: "write the prefix length of a node's subnet as a number, such as 24",
  SubnetMin: "write the base address of the first subnet, or remove the key",
  SubnetMax: "write the base address of the last subnet, or remove the key",
  IPv6Network: 'write an IPv6 network such as "fd00:10:244::/48"',
  IPv6SubnetLen: "write the prefix length of a node's subnet as a number, such as 64",
  IPv6SubnetMin: "write the base address of the first subnet, or remove the key",
  IPv6SubnetMax: "write the base address of the last subnet, or remove the key",
} as const;

export type ScalarKey = keyof typeof KEY_HINTS;

/** All top-level keys, as documented. */
export const TOP_LEVEL_KEYS: readonly string[] = [...Object.keys(KEY_HINTS), MASQ_EXCLUDE_KEY, "Backend"];

const flag = v.nullish(
  v.boolean((issue) => {
    const text = typeof issue.input === "string" ? issue.input.trim().toLowerCase() : "";
    const meant =
      text === "true" || text === "false" ? ` without quotes; nearest legal value is ${text}` : "";
    return `must be true or false${meant}`;
  }),
);

const length = v.nullish(
  v.pipe(
    v.number("must be a number without quotes"),
    v.integer("must be a whole number"),
    v.minValue(0, "must not be negative"),
  ),
);

/** A text that `read` turns into a value; a text of `read` is what is wrong. */
function textOf<Value extends object | bigint>(kind: string, read: (text: string) => Value | string) {
  return v.pipe(
    v.string(`must be text: ${kind}`),
    v.rawTransform(({ dataset, addIssue, NEVER }) => {
      const result = read(dataset.value);
      if (typeof result !== "string") return result;
      addIssue({ message: result });
      return NEVER;
    }),
  );
}

function network(family: 4 | 6) {
  return v.optional(textOf(`an IPv${family} network in CIDR form`, (text) => readNetwork(text, family)));
}

function address(family: 4 | 6) {
  return v.optional(textOf(`an IPv${family} address`, (text) => readAddress(text, family)));
}

/** The keys and types of the network config (all but `MasqExclude` and `Backend`); what follows from several keys is in range.ts. */
export const SCALAR_SCHEMAS = {
  EnableIPv4: flag,
  EnableIPv6: flag,
  EnableNFTables: flag,
  Network: network(4),
  SubnetLen: length,
  SubnetMin: address(4),
  SubnetMax: address(4),
  IPv6Network: network(6),
  IPv6SubnetLen: length,
  IPv6SubnetMin: address(6),
  IPv6SubnetMax: address(6),
} satisfies Record<ScalarKey, unknown>;

/** The values of valid keys. */
export type Scalars = {
  -readonly [Key in ScalarKey]?: v.InferOutput<(typeof SCALAR_SCHEMAS)[Key]>;
};

function readNetwork(text: string, family: 4 | 6): Prefix | string {
  const prefix = parsePrefix(text);
  if (!prefix) return explainNetwork(text, family);
  if (prefix.family !== family) {
    return `is an IPv${prefix.family} network; it belongs in ${prefix.family === 4 ? "Network" : "IPv6Network"}`;
  }
  // Upstream takes these for IPv6 and then routes nothing.
  if (prefix.family === 6 && prefix.length >= 96 && isIPv4Mapped(prefix.base)) {
    return "is an IPv4 network in IPv6 form; it belongs in Network";
  }
  return prefix;
}

function explainNetwork(text: string, family: 4 | 6): string {
  const longest = family === 4 ? 28 : 124;
  const [head = "", length] = text.split("/");
  if (addressFamily(head) === undefined) {
    const trimmed = canonicalPrefix(text.trim());
    const nearest = trimmed === undefined ? "" : `; nearest legal value is ${trimmed}`;
    return `is no IPv${family} network${explainOctets(head)}${nearest}`;
  }
  if (length === undefined) return "lacks the prefix length, such as /16";
  const nearest = /^\d+$/.test(length)
    ? `; nearest legal value is ${canonicalPrefix(`${head}/${longest}`)}`
    : "";
  return `has no legal prefix length, which is a number up to ${longest}${nearest}`;
}

function readAddress(text: string, family: 4 | 6): bigint | string {
  const address = family === 4 ? parseIPv4(text) : parseIPv6(text);
  if (address !== undefined) return BigInt(address);
  const [head = "", length] = text.trim().split("/");
  if (addressFamily(head) === family) {
    const problem = length === undefined ? "has spaces around it" : "is a network, not an address";
    return `${problem}; nearest legal value is ${head}`;
  }
  const other = addressFamily(head);
  if (other !== undefined) return `is an IPv${other} address; this key is for IPv${family}`;
  return `is no IPv${family} address${explainOctets(head)}`;
}

function explainOctets(text: string): string {
  if (/^\d+(\.\d+){3}$/.test(text)) {
    if (text.split(".").some((octet) => octet.length > 1 && octet.startsWith("0")))
      return ": an octet has leading zeros";
    return ": an octet is above 255";
  }
  return text.includes("%") ? ": a zone has no meaning here" : "";
}
