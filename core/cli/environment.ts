import { nearestName } from "../config/nearest.ts";
import { environmentName, FLAG_NAMES, type FlagName, flagSpec } from "./flag-table.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** What the environment says: one text per flag whose variable is not empty. */
export interface EnvironmentReading {
  readonly given: ReadonlyMap<FlagName, readonly string[]>;
  readonly warnings: readonly string[];
}

const PREFIX = "FLANNELD_";

/**
 * What Kubernetes injects into pods for a service called `flanneld`, or `flanneld-…`: `FLANNELD_PORT`,
 * `FLANNELD_SERVICE_HOST`, `FLANNELD_PORT_8081_TCP_ADDR` ….
 */
const SERVICE_VARIABLE =
  /_(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT|PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)$/;
const SERVICE_ADDRESS = /^(?:tcp|udp|sctp):\/\//;

/** Reads the `FLANNELD_…` variables; unknown ones are warned about, since they are mostly misspelt. */
export function readEnvironment(environment: Environment): EnvironmentReading {
  const given = new Map<FlagName, readonly string[]>();
  const warnings: string[] = [];
  const known = new Map(FLAG_NAMES.map((name) => [environmentName(name), name]));
  for (const [variable, value] of Object.entries(environment)) {
    if (!variable.startsWith(PREFIX) || !value) continue;
    const name = known.get(variable);
    const isService = SERVICE_VARIABLE.test(variable);
    if (name === undefined) {
      if (!isService) warnings.push(explainUnknown(variable, [...known.keys()]));
    } else if (isService && SERVICE_ADDRESS.test(value)) {
      warnings.push(`${variable} is ignored: it holds the address of a Kubernetes service, not a setting`);
    } else if (!flagSpec(name).noEnvironment) given.set(name, [value]);
  }
  return { given, warnings };
}

function explainUnknown(variable: string, known: readonly string[]): string {
  // Without the prefix, which every candidate shares and which would hide the differences.
  const meant = nearestName(
    variable.slice(PREFIX.length),
    known.map((each) => each.slice(PREFIX.length)),
  );
  return `environment variable ${variable} is unknown and ignored${meant ? `; did you mean ${PREFIX}${meant}?` : ""}`;
}
