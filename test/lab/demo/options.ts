import { parseArgs } from "node:util";

/** Backends whose data path is the host's own kernel and which any kernel with vxlan has. */
export const BACKENDS = ["vxlan", "host-gw"] as const;
export const FAMILIES = ["v4", "dual"] as const;
const LEAST_HOSTS = 2;
/** Every host runs a daemon of its own on this one machine. */
const MOST_HOSTS = 40;

export interface DemoOptions {
  readonly hosts: number;
  readonly backend: (typeof BACKENDS)[number];
  readonly family: (typeof FAMILIES)[number];
  readonly keep: boolean;
  readonly teardown: boolean;
  readonly help: boolean;
}

export const USAGE = `Usage: npm run demo -- [OPTION]...

Lays out a switch, hosts and one pod per host in network namespaces, starts a real etcd and one
flanneld per host, and shows which pod reaches which. Exits 0 only if every pair answered.

  --hosts N          number of hosts, ${LEAST_HOSTS}–${MOST_HOSTS} (default 3)
  --backend TYPE     ${BACKENDS.join(" or ")} (default vxlan)
  --family FAMILY    ${FAMILIES.join(" or ")} (default v4)
  --keep             leave everything standing and say how to enter it
  --teardown         remove what --keep (or a demo that was killed) left standing, and nothing else
  --help             this text
`;

/** Wrong arguments; the message says which and what is allowed. */
export class UsageError extends Error {}

/** Parses the demo's arguments; throws {@link UsageError}. */
export function parseOptions(args: readonly string[]): DemoOptions {
  let values: ReturnType<typeof parse>;
  try {
    values = parse(args);
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
  const hosts = Number(values.hosts);
  if (!/^\d+$/.test(values.hosts) || hosts < LEAST_HOSTS || hosts > MOST_HOSTS) {
    throw new UsageError(`--hosts is a number from ${LEAST_HOSTS} to ${MOST_HOSTS}, not "${values.hosts}"`);
  }
  return {
    hosts,
    backend: oneOf("--backend", BACKENDS, values.backend),
    family: oneOf("--family", FAMILIES, values.family),
    keep: values.keep,
    teardown: values.teardown,
    help: values.help,
  };
}

function parse(args: readonly string[]) {
  return parseArgs({
    args: [...args],
    strict: true,
    allowPositionals: false,
    options: {
      hosts: { type: "string", default: "3" },
      backend: { type: "string", default: "vxlan" },
      family: { type: "string", default: "v4" },
      keep: { type: "boolean", default: false },
      teardown: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  }).values;
}

function oneOf<Choice extends string>(flag: string, choices: readonly Choice[], value: string): Choice {
  const found = choices.find((choice) => choice === value);
  if (found === undefined) throw new UsageError(`${flag} is ${choices.join(" or ")}, not "${value}"`);
  return found;
}
