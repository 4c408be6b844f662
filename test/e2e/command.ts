import type { Cluster } from "../lab/cluster.ts";
import { executable } from "../lab/daemon.ts";
import type { Host } from "../lab/host.ts";
import type { Ran } from "../lab/namespace.ts";
import { endpointFor } from "../lab/switch-etcd.ts";

export interface CommandOptions {
  /** `--subnet-file`; default the host's. */
  readonly subnetFile?: string;
  /** Runs under this uid, without capabilities; default root. */
  readonly uid?: number;
  /** Added to the environment. */
  readonly env?: Readonly<Record<string, string>>;
}

/** Runs a command of the executable on a host, as an operator does, with the flags that the daemon there has unless others are given. */
export function runCommand(
  cluster: Cluster,
  host: Host,
  args: readonly string[],
  { subnetFile = host.subnetFile, uid, env = {} }: CommandOptions = {},
): Promise<Ran> {
  const as = uid === undefined ? [] : ["setpriv", `--reuid=${uid}`, "--clear-groups", "--inh-caps=-all"];
  const set = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  const flags = [
    `--etcd-endpoints=${endpointFor(host, cluster.switch)}`,
    `--subnet-file=${subnetFile}`,
    "--iface=ext0",
  ].filter((flag) => !args.some((given) => given.startsWith(flag.slice(0, flag.indexOf("=")))));
  return host.namespace.run([...as, "env", ...set, executable(), ...args, ...flags]);
}

/** Everything of a host's network that a daemon could have changed. */
export function dumpNetwork(host: Host): Promise<string> {
  return host.namespace.exec(
    "sh",
    "-ec",
    [
      "ip -d link show",
      "ip address show",
      "ip -4 route show table all",
      "ip -6 route show table all",
      "ip rule show",
      "ip -6 rule show",
      "ip nexthop show",
      "ip neighbour show nud permanent",
      "bridge fdb show",
      // Rules of iptables-nft count the packets that they match.
      "nft list ruleset | sed 's/counter packets [0-9]* bytes [0-9]*/counter/'",
    ].join("\n"),
  );
}
