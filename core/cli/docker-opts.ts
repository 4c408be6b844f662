import { Fault } from "../observe/fault.ts";

/** What is wanted of the options. */
export interface DockerForm {
  /** `DOCKER_OPT_BIP="--bip=…"` and so on. */
  readonly individual: boolean;
  /** `NAME=" --bip=… --ip-masq=… --mtu=…"` */
  readonly combined: boolean;
  /** NAME of the combined variable. */
  readonly key: string;
  /** Leaves out `--ip-masq`. */
  readonly withoutMasq: boolean;
}

const PREFIX = "DOCKER_OPT_";

/**
 * The options of dockerd that follow from the variables of a subnet file, byte for byte as `mk-docker-opts.sh` writes
 * them: any further `DOCKER_OPT_…` of the environment is taken along, in alphabetical order, and what the combined
 * variable holds already comes first. Throws Fault `DOCKER_OPTIONS` when FLANNEL_IPMASQ is neither true nor false.
 */
export function renderDockerOptions(
  variables: ReadonlyMap<string, string>,
  form: DockerForm,
  environment: Readonly<Record<string, string | undefined>>,
): string {
  const options = new Map(
    Object.entries(environment).flatMap(([name, value]) =>
      name.startsWith(PREFIX) && value !== undefined ? [[name, value] as const] : [],
    ),
  );
  const subnet = variables.get("FLANNEL_SUBNET");
  const mtu = variables.get("FLANNEL_MTU");
  if (subnet) options.set(`${PREFIX}BIP`, `--bip=${subnet}`);
  if (mtu) options.set(`${PREFIX}MTU`, `--mtu=${mtu}`);
  const masquerade = form.withoutMasq ? undefined : readMasquerade(variables.get("FLANNEL_IPMASQ"));
  // Only one of the two may masquerade.
  if (masquerade !== undefined) options.set(`${PREFIX}IPMASQ`, `--ip-masq=${!masquerade}`);
  const sorted = [...options].sort(([a], [b]) => (a < b ? -1 : 1));
  const before = environment[form.key] ?? "";
  return [
    ...(form.individual ? sorted.map(([name, value]) => `${name}="${value}"\n`) : []),
    ...(form.combined ? [`${form.key}="${before}${sorted.map(([, value]) => ` ${value}`).join("")}"\n`] : []),
  ].join("");
}

function readMasquerade(text: string | undefined): boolean | undefined {
  if (text === undefined || text === "") return undefined;
  if (text === "true" || text === "false") return text === "true";
  throw new Fault("DOCKER_OPTIONS", `FLANNEL_IPMASQ is ${JSON.stringify(text)}, neither true nor false`, {
    hint: "Correct the subnet file; flanneld writes it anew at its next start.",
  });
}
