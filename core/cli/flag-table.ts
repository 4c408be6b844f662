import {
  address,
  anyAddress,
  choice,
  duration,
  endpoints,
  flag,
  identifier,
  integer,
  margin,
  optionalText,
  regexes,
  seconds,
  text,
  texts,
  url,
  type ValueType,
} from "./value-types.ts";

export type FlagGroup = "etcd" | "kubernetes" | "interface" | "lease" | "traffic" | "plugins" | "observe";

/** Headings of the groups, in the order of the help. */
export const GROUP_TITLES: Readonly<Record<FlagGroup, string>> = {
  etcd: "Datastore: etcd",
  kubernetes: "Datastore: Kubernetes",
  interface: "Interface and addresses",
  lease: "Subnet and lease",
  traffic: "Traffic rules",
  plugins: "Backends and plugins",
  observe: "Health and logging",
};

/** One flag: drives parsing, environment, help and documentation. */
export interface FlagSpec<Value = unknown> {
  readonly group: FlagGroup;
  readonly type: ValueType<Value>;
  /** Value when not given, as one would write it; absent for none. */
  readonly initial?: string;
  /** Default as shown in the help, where it is no fixed text. */
  readonly initialText?: string;
  /** Must never be logged or shown. */
  readonly secret?: true;
  /** Command line only. */
  readonly noEnvironment?: true;
  /** Accepted for upstream's sake, without effect. */
  readonly inert?: true;
  readonly help: string;
}

/** Ten years: longer is a mistake, and etcd's own limit (9,000,000,000 s) is far beyond. */
const LONGEST_TTL = "87600h";

/** All flags. Names and defaults of upstream's flags are upstream's. */
export const FLAGS = {
  "etcd-endpoints": {
    group: "etcd",
    type: endpoints,
    initial: "http://127.0.0.1:4001,http://127.0.0.1:2379",
    help: "Members of the etcd cluster.",
  },
  "etcd-prefix": {
    group: "etcd",
    type: text("KEY"),
    initial: "/coreos.com/network",
    help: "Key below which the network config and the leases live.",
  },
  "etcd-keyfile": { group: "etcd", type: optionalText("FILE"), help: "Key of the client certificate (PEM)." },
  "etcd-certfile": { group: "etcd", type: optionalText("FILE"), help: "Client certificate (PEM)." },
  "etcd-cafile": {
    group: "etcd",
    type: optionalText("FILE"),
    help: "Authorities that etcd is verified with (PEM).",
  },
  "etcd-username": { group: "etcd", type: optionalText("NAME"), help: "User of etcd's own authentication." },
  "etcd-password": {
    group: "etcd",
    type: optionalText("PASSWORD"),
    secret: true,
    help: "Password of that user. On the command line every user of the host can see it: prefer the environment.",
  },

  "kube-subnet-mgr": {
    group: "kubernetes",
    type: flag,
    initial: "false",
    help: "Take the config from a file and the leases from Kubernetes nodes instead of etcd.",
  },
  "kube-api-url": { group: "kubernetes", type: url, help: "URL of the API server; not needed inside a pod." },
  "kube-annotation-prefix": {
    group: "kubernetes",
    type: text("PREFIX"),
    initial: "flannel.alpha.coreos.com",
    help: "Prefix of the node annotations.",
  },
  "kubeconfig-file": {
    group: "kubernetes",
    type: optionalText("FILE"),
    help: "How to reach the API server.",
  },
  "net-config-path": {
    group: "kubernetes",
    type: text("FILE"),
    initial: "/etc/kube-flannel/net-conf.json",
    help: "The network config.",
  },
  "set-node-network-unavailable": {
    group: "kubernetes",
    type: flag,
    initial: "true",
    help: "Clear the node condition NetworkUnavailable once the network is up.",
  },

  iface: {
    group: "interface",
    type: texts("NAME|IP"),
    help: "Interface for traffic between hosts, by name or address; the first match wins.",
  },
  "iface-regex": {
    group: "interface",
    type: regexes,
    help: "The same by regular expression against addresses, then names; tried after all --iface.",
  },
  "iface-can-reach": {
    group: "interface",
    type: anyAddress,
    help: "Take the interface that a packet to this address would leave by.",
  },
  "public-ip": {
    group: "interface",
    type: address(4),
    help: "IPv4 address that other nodes reach this one at.",
  },
  "public-ipv6": {
    group: "interface",
    type: address(6),
    help: "IPv6 address that other nodes reach this one at.",
  },
  "node-id": {
    group: "interface",
    type: identifier,
    initialText: "derived from the machine",
    help: "Stable identity of this node; two nodes must never share one.",
  },

  "subnet-file": {
    group: "lease",
    type: text("FILE"),
    initial: "/run/flannel/subnet.env",
    help: "File that tells container run times their subnet and MTU.",
  },
  "subnet-lease-ttl": {
    group: "lease",
    type: duration("5s", LONGEST_TTL),
    initial: "24h",
    help: "How long the lease outlives its last renewal.",
  },
  "subnet-lease-renew-margin": {
    group: "lease",
    type: margin,
    initial: "60",
    initialText: "60, at most a third of the ttl",
    help: "How long before its end the lease is renewed: minutes (1 to 1439), or a duration such as 10s.",
  },
  "subnet-lease-release-on-stop": {
    group: "lease",
    type: flag,
    initial: "false",
    help: "Give the subnet back when the daemon stops.",
  },

  "ip-masq": {
    group: "traffic",
    type: flag,
    initial: "false",
    help: "Masquerade traffic that leaves the cluster network.",
  },
  "ip-masq-fully-random-disable": {
    group: "traffic",
    type: flag,
    initial: "false",
    help: "Do not randomise the source ports of masqueraded connections.",
  },
  "iptables-resync": {
    group: "traffic",
    type: seconds(1, 86_400),
    initial: "5",
    help: "Time between two checks of the rules.",
  },
  "iptables-forward-rules": {
    group: "traffic",
    type: flag,
    initial: "true",
    help: "Accept forwarded traffic of the cluster network.",
  },
  "ip-blackhole-route": {
    group: "traffic",
    type: flag,
    initial: "false",
    help: "Drop traffic to addresses of the own subnet that no pod has.",
  },

  "plugin-dir": {
    group: "plugins",
    type: texts("DIR"),
    help: "Further folder of backend plugins, after /usr/lib/flannel/plugins and /etc/flannel/plugins.",
  },
  "allow-override": {
    group: "plugins",
    type: texts("NAME"),
    help: "Let this plugin replace a backend whose plugin it names in its overrides.",
  },
  "charon-executable": {
    group: "plugins",
    type: optionalText("FILE"),
    initialText: "looked for where packages put it",
    help: "strongSwan's charon, for the ipsec backend.",
  },

  "healthz-ip": {
    group: "observe",
    type: text("IP"),
    initial: "0.0.0.0",
    help: "Address of the health server.",
  },
  "healthz-port": {
    group: "observe",
    type: integer(-2_147_483_648, 65_535, "PORT"),
    initial: "0",
    help: "Port of the health server; 0 and below turn it off.",
  },
  "log-format": {
    group: "observe",
    type: choice("auto", "json", "text"),
    initial: "auto",
    help: "Form of the log lines; auto is text on a terminal, else JSON.",
  },
  v: { group: "observe", type: integer(-128, 128), initial: "0", help: "Verbosity; 1 and more log details." },
  vmodule: {
    group: "observe",
    type: optionalText("PATTERN=N"),
    inert: true,
    help: "Accepted, without effect.",
  },
  log_backtrace_at: {
    group: "observe",
    type: optionalText("FILE:LINE"),
    inert: true,
    help: "Accepted, without effect.",
  },
  version: {
    group: "observe",
    type: flag,
    initial: "false",
    noEnvironment: true,
    help: "Print the version and exit.",
  },
} as const satisfies Record<string, FlagSpec>;

export type FlagName = keyof typeof FLAGS;

/** All flag names in the order of the help. */
export const FLAG_NAMES = Object.keys(FLAGS) as readonly FlagName[];

/** The table by name, with all optional properties. */
export function flagSpec(name: FlagName): FlagSpec {
  return FLAGS[name];
}

/** Whether a word is the name of a flag. */
export function isFlagName(name: string): name is FlagName {
  return Object.hasOwn(FLAGS, name);
}

/** The environment variable of a flag: `FLANNELD_` and the name in capitals, `-` and `.` as `_`. */
export function environmentName(name: FlagName): string {
  return `FLANNELD_${name.toUpperCase().replaceAll(/[-.]/g, "_")}`;
}
