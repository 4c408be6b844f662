import * as v from "valibot";
import type { Families } from "../lease/lease.ts";
import type { SubnetRange } from "../lease/store.ts";
import { formatPrefix, hasHostBits } from "../net/prefix.ts";
import type { Finding } from "../observe/finding.ts";
import { type BackendConfig, readBackend } from "./backend.ts";
import { type Issue, issuesToFault, placeOf, showValue } from "./issue.ts";
import { readJson } from "./json.ts";
import { type JsonDocument, type JsonNode, type JsonObject, lastMember, toValue } from "./json-tree.ts";
import { warnDuplicateKeys, warnUnknownKeys } from "./keys.ts";
import { type MasqExclude, readMasqExclude } from "./masq-exclude.ts";
import { planRange, type RangeField, type RangeIssue } from "./range.ts";
import { KEY_HINTS, SCALAR_SCHEMAS, type ScalarKey, type Scalars, TOP_LEVEL_KEYS } from "./schema.ts";

export type { BackendConfig } from "./backend.ts";
export type { MasqExclude } from "./masq-exclude.ts";

/** The network config, checked and complete. */
export interface NetworkConfig {
  /** Present exactly when the family is enabled. */
  readonly ipv4?: SubnetRange;
  readonly ipv6?: SubnetRange;
  readonly enableNFTables: boolean;
  /** What is never masqueraded; empty lists when nothing is said. */
  readonly masqExclude: MasqExclude;
  readonly backend: BackendConfig;
  readonly families: Families;
}

export interface NetworkConfigReading {
  readonly config: NetworkConfig;
  readonly warnings: readonly Finding[];
  /** The text with its positions, for messages about backend options. */
  readonly document: JsonDocument;
}

/**
 * Reads and checks a network config the way upstream's etcd mode does, for every store alike. `source` is the key
 * or file it came from and heads every message.
 * @throws Fault `CONFIG_INVALID`, `<source>:<line>:<column>: key "SubnetLen": 31 is …; nearest legal value is 30`;
 * all issues of the document are found in one pass, the further ones are its `others`.
 */
export function readNetworkConfig(text: string, source: string): NetworkConfigReading {
  const document = readJson(text, source);
  const { root } = document;
  if (root.kind !== "object") {
    const what = `${showValue(document, root)} is no network config`;
    throw issuesToFault(
      [{ offset: root.start, what, hint: 'write a JSON object with a "Network"' }],
      document,
      source,
    );
  }
  const reader = new Reader(document, root, source);
  const config = reader.read();
  if (!config) throw issuesToFault(reader.issues, document, source, reader.warnings);
  return { config, warnings: reader.warnings, document };
}

type FamilyKeys = Readonly<Record<RangeField | "enable", ScalarKey>>;

const KEYS_4 = {
  enable: "EnableIPv4",
  network: "Network",
  subnetLen: "SubnetLen",
  subnetMin: "SubnetMin",
  subnetMax: "SubnetMax",
} as const satisfies FamilyKeys;

const KEYS_6 = {
  enable: "EnableIPv6",
  network: "IPv6Network",
  subnetLen: "IPv6SubnetLen",
  subnetMin: "IPv6SubnetMin",
  subnetMax: "IPv6SubnetMax",
} as const satisfies FamilyKeys;

class Reader {
  readonly issues: Issue[] = [];
  readonly warnings: Finding[] = [];
  readonly #document: JsonDocument;
  readonly #root: JsonObject;
  readonly #source: string;
  /** What is wrong with the spelling of a subnet length whose meaning is clear. */
  readonly #misspeltLengths = new Map<ScalarKey, string>();

  constructor(document: JsonDocument, root: JsonObject, source: string) {
    this.#document = document;
    this.#root = root;
    this.#source = source;
  }

  read(): NetworkConfig | undefined {
    this.#warnAboutText();
    const scalars = this.#readScalars();
    const families: Families = { ipv4: scalars.EnableIPv4 ?? true, ipv6: scalars.EnableIPv6 ?? false };
    if (!families.ipv4 && !families.ipv6)
      this.#refuse("EnableIPv4", "leaves both families off", NO_FAMILY_HINT);
    const ipv4 = this.#family(KEYS_4, scalars, families.ipv4);
    const ipv6 = this.#family(KEYS_6, scalars, families.ipv6);
    const masqExclude = this.#masqExclude(families);
    const backend = readBackend(this.#document);
    if ("offset" in backend) this.issues.push(backend);
    if ("offset" in backend || this.issues.length > 0) return undefined;
    return {
      ...(ipv4 ? { ipv4 } : {}),
      ...(ipv6 ? { ipv6 } : {}),
      enableNFTables: scalars.EnableNFTables ?? false,
      masqExclude,
      backend,
      families,
    };
  }

  #masqExclude(families: Families): MasqExclude {
    const { masqExclude, issues, warnings } = readMasqExclude(this.#document, families);
    this.issues.push(...issues);
    for (const { code, offset, what, hint } of warnings) this.#warn(code, offset, what, hint);
    return masqExclude;
  }

  #warnAboutText(): void {
    if (this.#document.text.startsWith("\ufeff")) {
      this.#warn(
        "CONFIG_BOM",
        0,
        "the text begins with a byte order mark",
        "remove it: upstream's daemon refuses it",
      );
    }
    this.warnings.push(
      ...warnDuplicateKeys(this.#document, this.#source),
      ...warnUnknownKeys(this.#root.members, TOP_LEVEL_KEYS, this.#document, this.#source),
    );
  }

  #readScalars(): Scalars {
    const values: Partial<Record<ScalarKey, unknown>> = {};
    for (const key of Object.keys(SCALAR_SCHEMAS) as ScalarKey[]) {
      const node = lastMember(this.#root, key)?.value;
      if (!node) continue;
      const result = v.safeParse(SCALAR_SCHEMAS[key], toValue(node));
      const problem = result.success
        ? explainSpelling(this.#document.raw(node), node)
        : result.issues[0].message;
      const meant = problem && key.endsWith("SubnetLen") ? guessLength(node) : undefined;
      if (problem === undefined) values[key] = result.output;
      else if (meant === undefined) this.#refuse(key, problem);
      else {
        values[key] = meant;
        this.#misspeltLengths.set(key, problem);
      }
    }
    return values as Scalars;
  }

  #family(keys: typeof KEYS_4 | typeof KEYS_6, scalars: Scalars, enabled: boolean): SubnetRange | undefined {
    const network = scalars[keys.network];
    const networkNode = lastMember(this.#root, keys.network)?.value;
    if (!enabled) this.#warnIgnored(keys);
    else if (!networkNode) this.#refuseMissing(keys);
    if (!enabled || !networkNode || !network) {
      const problem = this.#misspeltLengths.get(keys.subnetLen);
      if (problem !== undefined) this.#refuse(keys.subnetLen, problem);
      return undefined;
    }
    const subnetLen = scalars[keys.subnetLen] ?? undefined;
    const bounds = { subnetMin: scalars[keys.subnetMin], subnetMax: scalars[keys.subnetMax] };
    const plan = planRange({ network, subnetLen, ...bounds });
    for (const issue of this.#withSpelling(plan.issues ?? [], keys, subnetLen))
      this.#refuseField(keys, issue);
    this.#warnHostBits(keys.network, networkNode, formatPrefix(network));
    return plan.range;
  }

  /** A length that was not written as plain digits is refused as such, with a proposal that is legal here. */
  #withSpelling(issues: readonly RangeIssue[], keys: FamilyKeys, meant = 0): readonly RangeIssue[] {
    const problem = this.#misspeltLengths.get(keys.subnetLen);
    if (problem === undefined) return issues;
    const nearest = issues.find(({ field }) => field === "subnetLen")?.nearest ?? String(meant);
    return [{ field: "subnetLen", problem, nearest }, ...issues.filter(({ field }) => field !== "subnetLen")];
  }

  #refuseField(keys: FamilyKeys, { field, problem, nearest }: RangeIssue): void {
    const key = keys[field];
    const value = field === "subnetLen" ? nearest : `"${nearest}"`;
    if (nearest === undefined) this.#refuse(key, problem);
    else this.#refuse(key, `${problem}; nearest legal value is ${nearest}`, `set "${key}" to ${value}`);
  }

  #warnHostBits(key: ScalarKey, node: JsonNode, canonical: string): void {
    if (node.kind !== "string" || !hasHostBits(node.value)) return;
    const what = `key "${key}": ${node.value} has host bits and is read as ${canonical}`;
    this.#warn("CONFIG_HOST_BITS", node.start, what, `write "${canonical}"`);
  }

  #warnIgnored(keys: FamilyKeys): void {
    const member = lastMember(this.#root, keys.network);
    if (!member) return;
    const what = `key "${keys.network}" is ignored: "${keys.enable}" is not true`;
    this.#warn(
      "CONFIG_IGNORED_KEY",
      member.keyStart,
      what,
      `set "${keys.enable}" to true, or remove "${keys.network}"`,
    );
  }

  #refuseMissing(keys: FamilyKeys): void {
    const example = KEY_HINTS[keys.network].replace("write", `add "${keys.network}":`);
    const hint = `${example}, or set "${keys.enable}" to false`;
    this.issues.push({ offset: this.#root.start, what: `key "${keys.network}" is missing`, hint });
  }

  #refuse(key: ScalarKey, problem: string, hint: string = KEY_HINTS[key]): void {
    const node = lastMember(this.#root, key)?.value ?? this.#root;
    const value = node === this.#root ? "" : ` ${showValue(this.#document, node)}`;
    this.issues.push({ offset: node.start, what: `key "${key}":${value} ${problem}`, hint });
  }

  #warn(code: string, offset: number, what: string, fix: string): void {
    const text = `${placeOf(this.#document, this.#source, offset)}: ${what}`;
    this.warnings.push({ code, severity: "warning", title: "the network config has a blemish", text, fix });
  }
}

/** Go reads neither 24.0 nor 1e1 nor -0 into an unsigned integer. */
function explainSpelling(raw: string, node: JsonNode): string | undefined {
  return node.kind === "number" && !/^\d+$/.test(raw) ? "must be plain digits" : undefined;
}

/** The subnet length that a misspelt one was meant to be, undefined when that is not clear. */
function guessLength(node: JsonNode): number | undefined {
  if (node.kind === "number" && Number.isFinite(node.value)) return Math.round(Math.abs(node.value));
  if (node.kind !== "string") return undefined;
  const digits = /^\s*\/?(\d{1,3})\s*$/.exec(node.value)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

const NO_FAMILY_HINT = 'set "EnableIPv4" or "EnableIPv6" to true';
