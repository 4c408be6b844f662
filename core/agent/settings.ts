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
  readonly healthzIp: string;
  /** 0 and below: no health server. */
  readonly healthzPort: number;
}
