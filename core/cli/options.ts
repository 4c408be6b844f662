import { Fault } from "../observe/fault.ts";
import { formatDuration } from "./duration.ts";
import { environmentName, FLAG_NAMES, type FLAGS, type FlagName, flagSpec } from "./flag-table.ts";
import { BadCredentials, BadValue } from "./value-types.ts";

type CamelCase<Name extends string> = Name extends `${infer Head}${"-" | "_"}${infer Tail}`
  ? `${Head}${Capitalize<CamelCase<Tail>>}`
  : Name;

type OptionName<Name extends FlagName> = Name extends "v" ? "verbosity" : CamelCase<Name>;

/**
 * The settings of the daemon: one property per flag, `-etcd-cafile` as `etcdCafile` (`-v` as `verbosity`).
 * Times are milliseconds; a setting without a value is undefined; addresses are canonical.
 */
export type Options = {
  readonly [Name in FlagName as OptionName<Name>]: ReturnType<(typeof FLAGS)[Name]["type"]["read"]>;
};

/** Texts of flags, by where they come from; the command line wins. */
export interface Sources {
  readonly commandLine: ReadonlyMap<FlagName, readonly string[]>;
  readonly environment: ReadonlyMap<FlagName, readonly string[]>;
}

/** Default margin as long as the lease is long enough for it, as a part of the ttl. */
const LARGEST_MARGIN_PART = 1 / 3;

/**
 * The options of the texts given, defaults filled in.
 * @throws Fault `FLAG_INVALID` naming the flag or variable, with all further ones as `others`.
 */
export function buildOptions(sources: Sources): { options: Options; warnings: string[] } {
  const values = new Map<FlagName, unknown>();
  const faults: Fault[] = [];
  for (const name of FLAG_NAMES) {
    const { type, initial } = flagSpec(name);
    const given = sources.commandLine.get(name) ?? sources.environment.get(name);
    try {
      values.set(name, type.read(given ?? (initial === undefined ? [] : [initial])));
    } catch (error) {
      if (!(error instanceof BadValue)) throw error;
      faults.push(explainBadValue(name, given ?? [], sources, error));
    }
  }
  const options = Object.fromEntries(
    FLAG_NAMES.map((name) => [optionName(name), values.get(name)]),
  ) as Options;
  const named = (name: FlagName) => describeOrigin(name, sources);
  if (faults.length === 0) faults.push(...checkTogether(options, sources, named));
  const [first, ...others] = faults;
  if (first) throw new Fault(first.code, first.message, { hint: first.hint, others });
  return { options: withMargin(options, sources), warnings: warnAboutOptions(options, sources, named) };
}

function optionName(name: FlagName): string {
  return name === "v"
    ? "verbosity"
    : name.replaceAll(/[-_](.)/g, (_, letter: string) => letter.toUpperCase());
}

/** The flag or the variable that a setting came from, for messages. */
function describeOrigin(name: FlagName, { commandLine, environment }: Sources): string {
  return !commandLine.has(name) && environment.has(name)
    ? `variable ${environmentName(name)}`
    : `flag -${name}`;
}

function isGiven(name: FlagName, { commandLine, environment }: Sources): boolean {
  return commandLine.has(name) || environment.has(name);
}

function explainBadValue(name: FlagName, given: readonly string[], sources: Sources, error: BadValue): Fault {
  const spec = flagSpec(name);
  const hide = spec.secret || error instanceof BadCredentials;
  const text = (spec.type.repeats ? given.join(", ") : (given.at(-1) ?? "")).toWellFormed();
  const value = hide ? "the value" : JSON.stringify(text.length > 128 ? `${text.slice(0, 128)}…` : text);
  const placeholder = spec.type.placeholder || "true|false";
  const hint =
    hide && error instanceof BadCredentials ? CREDENTIALS_HINT : `expected ${placeholder}: ${spec.help}`;
  return new Fault("FLAG_INVALID", `${describeOrigin(name, sources)}: ${value} ${error.message}`, { hint });
}

const CREDENTIALS_HINT = "for etcd use -etcd-username and -etcd-password, for Kubernetes a kubeconfig file";

function checkTogether(options: Options, sources: Sources, named: (name: FlagName) => string): Fault[] {
  const faults: Fault[] = [];
  const refuse = (message: string, hint: string) => faults.push(new Fault("FLAG_INVALID", message, { hint }));
  if (options.etcdEndpoints.length === 0 && !options.kubeSubnetMgr) {
    refuse(`${named("etcd-endpoints")} names no endpoint`, "give at least one URL, or -kube-subnet-mgr");
  }
  if (options.etcdKeyfile && !options.etcdCertfile) {
    refuse(`${named("etcd-keyfile")} lacks its certificate`, "give -etcd-certfile as well");
  }
  if (options.etcdCertfile && !options.etcdKeyfile) {
    refuse(`${named("etcd-certfile")} lacks its key`, "give -etcd-keyfile as well");
  }
  if (options.etcdUsername && !options.etcdPassword) {
    refuse(`${named("etcd-username")} lacks its password`, "set FLANNELD_ETCD_PASSWORD as well");
  }
  const { subnetLeaseRenewMargin: margin, subnetLeaseTtl: ttl } = options;
  if (isGiven("subnet-lease-renew-margin", sources) && margin >= ttl) {
    const message = `${named("subnet-lease-renew-margin")}: ${formatDuration(margin)} is not less than the ttl of ${formatDuration(ttl)}`;
    refuse(message, `give less than -subnet-lease-ttl, such as ${formatDuration(ttl * LARGEST_MARGIN_PART)}`);
  }
  return faults;
}

function withMargin(options: Options, sources: Sources): Options {
  if (isGiven("subnet-lease-renew-margin", sources)) return options;
  const largest = Math.floor(options.subnetLeaseTtl * LARGEST_MARGIN_PART);
  return { ...options, subnetLeaseRenewMargin: Math.min(options.subnetLeaseRenewMargin, largest) };
}

function warnAboutOptions(options: Options, sources: Sources, named: (name: FlagName) => string): string[] {
  const inert = FLAG_NAMES.filter((name) => flagSpec(name).inert && isGiven(name, sources));
  return [
    ...inert.map((name) => `${named(name)} has no effect`),
    ...(options.etcdPassword && !options.etcdUsername
      ? [`${named("etcd-password")} has no effect without -etcd-username`]
      : []),
  ];
}

/** The options by flag name for a log line, without those that have no value; secrets are replaced. */
export function describeOptions(options: Options): Readonly<Record<string, unknown>> {
  const values: Readonly<Record<string, unknown>> = options;
  return Object.fromEntries(
    FLAG_NAMES.flatMap((name) => {
      const value = values[optionName(name)];
      if (value === undefined || (Array.isArray(value) && value.length === 0)) return [];
      const { secret, type } = flagSpec(name);
      if (secret) return [[name, "[redacted]"]];
      return [[name, type.isTime ? formatDuration(Number(value)) : value]];
    }),
  );
}
