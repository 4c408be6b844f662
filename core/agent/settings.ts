/** What the daemon is told by flags and environment, already checked. Times are in ms; undefined is "not given". */
export interface Settings {
  readonly etcdEndpoints: readonly string[];
  readonly etcdPrefix: string;
  readonly etcdKeyfile: string | undefined;
  readonly etcdCertfile: string | undefined;
  readonly etcdCafile: string | undefined;
  readonly etcdUsername: string | undefined;
  readonly etcdPassword: string | undefined;
  readonly iface: readonly string[];
  readonly ifaceRegex: readonly string[];
  readonly ifaceCanReach: string | undefined;
  readonly publicIp: string | undefined;
  readonly publicIpv6: string | undefined;
  readonly subnetFile: string;
  readonly subnetLeaseRenewMargin: number;
  readonly subnetLeaseTtl: number;
  readonly subnetLeaseReleaseOnStop: boolean;
  readonly ipMasq: boolean;
  readonly ipMasqFullyRandomDisable: boolean;
  readonly iptablesForwardRules: boolean;
  readonly iptablesResync: number;
  readonly ipBlackholeRoute: boolean;
  readonly nodeId: string | undefined;
  readonly charonExecutable: string | undefined;
  readonly healthzIp: string;
  /** 0 and below: no health server. */
  readonly healthzPort: number;
}

/** Values of the flags that belong to one backend, by the flag's name. */
export type PluginFlags = Readonly<Record<string, string>>;

/** Those of them that were given; undefined when there are none. */
export function pluginFlags({
  charonExecutable,
}: Pick<Settings, "charonExecutable">): PluginFlags | undefined {
  return charonExecutable === undefined ? undefined : { "charon-executable": charonExecutable };
}
