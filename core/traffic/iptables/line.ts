import { canonicalPrefix } from "../../net/prefix.ts";
import type { AddressMatch, Rule, Verdict } from "../rules.ts";
import type { OwnChain } from "./chains.ts";

/** A line of `iptables-save` that appends a rule. */
export interface SavedLine {
  readonly chain: string;
  /** What `-j` or `-g` names. */
  readonly target: string | undefined;
  /** Everything behind the chain's name, as written: with `-D CHAIN` in front it deletes the rule. */
  readonly spec: string;
}

/** Targets that rules of ours have. */
const TARGETS: Readonly<Record<string, Verdict>> = {
  ACCEPT: "accept",
  RETURN: "return",
  MASQUERADE: "masquerade",
};

/** One rule as `iptables-restore` reads it and `iptables-save` writes it. */
export function renderRule(chain: OwnChain, rule: Rule): string {
  const words = [`-A ${chain.name}`];
  const address = (option: string, match: AddressMatch | undefined) => {
    if (match) words.push(`${match.not ? "! " : ""}${option} ${match.prefix}`);
  };
  address("-s", rule.source);
  address("-d", rule.destination);
  if (rule.mark) words.push(`-m mark --mark ${hex(rule.mark.value)}/${hex(rule.mark.mask)}`);
  words.push(`-m comment --comment "${chain.comment}" -j ${renderVerdict(rule.verdict)}`);
  return words.join(" ");
}

/** The jump to a chain of ours, at the end of its base chain. */
export function renderJump({ base, comment, name }: OwnChain): string {
  return `-A ${base} -m comment --comment "${comment}" -j ${name}`;
}

/** Takes a line apart as far as everybody's rules can be; undefined for a line that appends no rule. */
export function parseLine(line: string): SavedLine | undefined {
  const [, chain, spec = ""] = /^-A (\S+) ?(.*)$/.exec(line) ?? [];
  if (chain === undefined) return undefined;
  const words = splitWords(spec);
  const at = words.findIndex((word) => word === "-j" || word === "-g");
  return { chain, target: at < 0 ? undefined : words[at + 1], spec };
}

/** The rule behind a spec, undefined when it says more, or other things, than rules of ours do. */
export function parseRule(spec: string): Rule | undefined {
  const reading = readSpec(spec);
  const verdict = reading && TARGETS[reading.target];
  if (!reading || verdict === undefined) return undefined;
  const { randomFully, target: _, ...matches } = reading;
  if (!randomFully) return { ...matches, verdict };
  return verdict === "masquerade" ? { ...matches, verdict: "masquerade-random" } : undefined;
}

/** Whether a spec does nothing but jump (not go) to `chain`, for every packet. */
export function isPlainJump(spec: string, chain: string): boolean {
  const reading = readSpec(spec);
  if (!reading || reading.target !== chain) return false;
  return !reading.randomFully && !reading.mark && !reading.source && !reading.destination;
}

interface Reading {
  mark?: { value: number; mask: number };
  source?: AddressMatch;
  destination?: AddressMatch;
  target: string;
  randomFully?: true;
}

/** Reads the options that rules of ours have; undefined at the first other one. */
function readSpec(spec: string): Reading | undefined {
  const reading: Reading = { target: "" };
  const words = splitWords(spec)[Symbol.iterator]();
  const next = () => words.next().value ?? "";
  let not = false;
  for (let word = next(); word !== ""; word = next()) {
    if (not && word !== "-s" && word !== "-d") return undefined;
    if (word === "!") not = true;
    else if (word === "-s" || word === "-d") {
      const address = readAddress(next(), not);
      if (address === undefined) return undefined;
      if (address !== "any") reading[word === "-s" ? "source" : "destination"] = address;
      not = false;
    } else if (word === "-m") {
      if (!["mark", "comment"].includes(next())) return undefined;
    } else if (word === "--comment") next();
    else if (word === "--mark") {
      const mark = readMark(next());
      if (!mark) return undefined;
      reading.mark = mark;
    } else if (word === "-j") reading.target = next();
    else if (word === "--random-fully") reading.randomFully = true;
    else return undefined;
  }
  return reading;
}

function readAddress(text: string, not: boolean): AddressMatch | "any" | undefined {
  const length = text.includes(":") ? 128 : 32;
  const prefix = canonicalPrefix(text.includes("/") ? text : `${text}/${length}`);
  if (prefix === undefined) return undefined;
  if (prefix.endsWith("/0")) return not ? undefined : "any";
  return not ? { prefix, not } : { prefix };
}

/** `0x4000/0x4000`; without a mask all bits count. */
function readMark(text: string): { value: number; mask: number } | undefined {
  const [value, mask = 0xffffffff] = text.split("/").map(Number);
  if (value === undefined || Number.isNaN(value) || Number.isNaN(mask)) return undefined;
  return { value, mask };
}

function renderVerdict(verdict: Verdict): string {
  return verdict === "masquerade-random" ? "MASQUERADE --random-fully" : verdict.toUpperCase();
}

function hex(number: number): string {
  return `0x${number.toString(16)}`;
}

/** Words as a shell would see them: `iptables-save` puts text with spaces into double quotes. */
function splitWords(text: string): string[] {
  return [...text.matchAll(/"((?:[^"\\]|\\.)*)"|(\S+)/g)].map(
    ([, quoted, plain]) => plain ?? (quoted ?? "").replace(/\\(.)/g, "$1"),
  );
}
