import type { Child, ChildSpec } from "../../core/host/child-spec.ts";
import type { Families, LeaseData, Peer, Subnets } from "../../core/lease/lease.ts";
import type { Kernel } from "../../core/netlink/kernel.ts";
import type { KernelObject, TunnelPacket, WantedLink } from "../../core/netlink/objects.ts";
import type { Finding } from "../../core/observe/finding.ts";
import type { CloudBackend } from "./cloud.ts";
import type { HostFacts } from "./facts.ts";
import type { StandardSchema } from "./standard-schema.ts";

/** Contract generation this SDK describes; `plugin.json` lists the generations a plugin supports in `api`. */
export const API = 1;

/** What a plugin's module exports by default. All arguments and results are plain data. */
export interface BackendPlugin<Options = unknown> {
  /**
   * Names of the `Backend` keys this plugin understands, as documented. Keys are matched case-insensitively;
   * an unknown key is a warning with a "did you mean".
   */
  readonly optionNames: readonly string[];
  /** Validates the `Backend` object (keys folded to `optionNames`, `Type` removed) and fills in defaults. */
  readonly options: StandardSchema<Options>;
  /** Looks for trouble before anything is made. No side effects. */
  check?(input: CheckInput<Options>): readonly Finding[] | Promise<readonly Finding[]>;
  /** Builds the backend for validated options. Pure: nothing is made on the host yet. */
  configure(input: ConfigureInput<Options>): Backend;
}

/** What a backend is built from. */
export interface ConfigureInput<Options> {
  readonly options: Options;
  /** Families the network config enables. */
  readonly families: Families;
  /** Cluster networks as CIDR text, per enabled family. */
  readonly networks: Subnets;
  /**
   * Networks that this host had in its last run (its subnet file tells) and has no more, per family. What a backend
   * that acts itself wrote in them is still there: it goes at `attach`. Absent where there are none.
   */
  readonly formerNetworks?: Subnets;
  /** Stable identity of this node, for deriving stable MACs and the like. */
  readonly nodeId: string;
  /** Values of the flags that belong to one backend (`charon-executable`), by name; what is not given is absent. */
  readonly flags?: Readonly<Record<string, string>>;
}

/** What a check may look at. */
export interface CheckInput<Options> extends ConfigureInput<Options> {
  readonly facts: HostFacts;
}

/** The own lease as far as a backend needs it. */
export interface OwnLease {
  readonly subnets: Subnets;
}

/** All kinds of backend; `mode` tells them apart. */
export type Backend = DeclarativeBackend | ActiveBackend | CloudBackend;

/**
 * A backend whose data path is kernel objects: it says what it wants as data, core makes it so and keeps it so.
 * Every function is pure and may be called any number of times, also with changed facts.
 */
export interface DeclarativeBackend {
  readonly mode: "declarative";
  /** Set when `peer()` looks at `facts.routes`: core then keeps them up to date and plans anew when they change. */
  readonly usesRoutes?: boolean;
  /** Set when peers are never programmed (alloc): core does not watch them. */
  readonly ignoresPeers?: boolean;
  /**
   * What peers send here and nobody else may: core drops such packets from addresses that are no member's public one
   * (option `MembersOnly` of ours). Absent or empty: no filter.
   */
  readonly membersOnly?: readonly TunnelPacket[];
  /** Devices needed before the lease; created, adopted or re-created by core. */
  links(facts: HostFacts): readonly WantedLink[];
  /** What peers must know; `facts.links` holds the devices of `links()` as the kernel has them. */
  publish(facts: HostFacts): LeaseData;
  /** MTU for pods, written to the subnet file. */
  mtu(facts: HostFacts): number;
  /** Objects that follow from the own lease (addresses, sysctls, offloads). */
  own(lease: OwnLease, facts: HostFacts): readonly KernelObject[];
  /** Objects that reach one peer. Order in the kernel is core's business. */
  peer(peer: Peer, facts: HostFacts): PeerPlan;
}

/** What one peer needs, and why a part of it is left out (shown to the operator once). */
export interface PeerPlan {
  readonly objects: readonly KernelObject[];
  readonly problems?: readonly string[];
}

/** What changed since the last successful `sync`. */
export interface PeerDelta {
  readonly added: readonly Peer[];
  readonly changed: readonly Peer[];
  /** Keys of removed peers. */
  readonly removed: readonly string[];
}

/** What came of a `sync`; a rejection means that nothing did. */
export interface SyncReport {
  /** Peers that could not be programmed; core retries them with back-off. */
  readonly failed: readonly { readonly key: string; readonly reason: string }[];
  /** Peers that cannot be reached as they are (another backend, bad data): shown, not retried. */
  readonly unusable?: readonly { readonly key: string; readonly reason: string }[];
  /** MTU for pods, where it follows the host: one that is another than `attach` said goes to the subnet file at once. */
  readonly mtu?: number;
}

/**
 * The kernel's network state as a backend that acts itself may read and change it; see core/netlink/kernel.ts. What it
 * writes carries our mark (route protocol 140).
 */
export type HostKernel = Pick<
  Kernel,
  | "links"
  | "link"
  | "addresses"
  | "routes"
  | "neighbours"
  | "createLink"
  | "setLink"
  | "deleteLink"
  | "apply"
  | "wireguard"
  | "setWireguard"
  | "xfrmPolicies"
  | "xfrmStates"
  | "applyXfrm"
>;

/** Host services for a backend that acts itself. */
export interface Host {
  readonly kernel: HostKernel;
  readonly log: {
    info(message: string, fields?: Readonly<Record<string, unknown>>): void;
    warn(message: string, fields?: Readonly<Record<string, unknown>>): void;
  };
  /** Where a backend may keep a small file until the next reboot: `/run/flannel/subnet.env.NAME` by default. */
  statePath(name: string): string;
  /**
   * Runs a command without a shell, with `env` beside the daemon's own environment; `timeout` in ms. Rejects on a
   * non-zero exit and at the time-out; the error, or its `cause`, then has what was printed as `stdout` and `stderr`.
   * With `group` whatever the command started itself is ended with it at the time-out (a shell's children), and the
   * command is over when it ends, whoever has its outputs open still.
   */
  run(
    file: string,
    args: readonly string[],
    options?: {
      readonly input?: string;
      readonly timeout?: number;
      readonly env?: Readonly<Record<string, string>>;
      readonly group?: boolean;
    },
  ): Promise<{ readonly stdout: string; readonly stderr: string }>;
  /**
   * Keeps a process running until it is stopped. It is killed when the daemon dies, but for one that lasts: that one
   * goes on, and the next daemon with it.
   */
  keepRunning(spec: ChildSpec): Child;
  /** Ids of processes that this daemon or an earlier one started with that `lasting.note` and that still run. */
  findLasting(note: string): readonly number[];
  /** Asks core for a `sync` and for the health soon: something happened that only the backend sees. */
  wake(): void;
  /** Aborted when the daemon stops. */
  readonly signal: AbortSignal;
}

/** A backend that moves packets or calls an API itself. Core owns watch, debounce, retry and resync. */
export interface ActiveBackend {
  readonly mode: "active";
  /** How long `stop` may take where half a second is not enough, ms; the stop of the daemon takes that much longer. */
  readonly stopPatience?: number;
  /**
   * Names of the devices this backend makes or writes marked routes (protocol 140) to. After `attach` core removes what
   * other backends left: devices named as ours are and not in here, and marked routes of the cluster's networks on
   * devices not in here. Absent: only vxlan and ipip devices of ours, and marked routes on the external interface.
   * Changes of these devices and of marked routes in the cluster's networks make core ask for a `sync` within 200 ms; a
   * change of the external interface (its MTU) does so for every backend.
   */
  readonly devices?: readonly string[];
  /** Set when the backend writes marked blackhole routes in the cluster's networks: core then leaves them. */
  readonly keepsBlackholes?: boolean;
  /** Set when the backend writes IPsec policies with request id 11 in the cluster's networks: core then leaves them. */
  readonly keepsPolicies?: boolean;
  /**
   * `cleanup` finds everything whatever the options are: `flanneld cleanup` asks it even when the network config cannot
   * be read. Otherwise it says then that this backend was not asked.
   */
  readonly cleansUpUnaided?: boolean;
  /**
   * What peers send here and nobody else may: core drops such packets from addresses that are no member's public one
   * (option `MembersOnly` of ours). Absent or empty: no filter.
   */
  readonly membersOnly?: readonly TunnelPacket[];
  /** Makes the device or opens the socket; returns what peers must know. */
  prepare(host: Host, facts: HostFacts): Promise<LeaseData>;
  /** The lease is held; brings the data path up. Returns the MTU for pods. */
  attach(lease: OwnLease, facts: HostFacts): Promise<{ readonly mtu: number }>;
  /** Level-triggered and idempotent: `peers` is the whole truth, `delta` a shortcut to it. */
  sync(peers: readonly Peer[], delta: PeerDelta, facts: HostFacts): Promise<SyncReport>;
  /** What is wrong right now. */
  health?(): Promise<readonly Finding[]>;
  /** How the data path is made and what went through it, names and values, for `flanneld status`. Asks nobody. */
  describe?(): Readonly<Record<string, string>>;
  /** The daemon stops: let go, leave the data plane forwarding where the kind of backend allows it. */
  stop(): Promise<void>;
  /** Removes everything this backend ever made on the host; returns what it removed (or would remove). */
  cleanup(options: CleanupOptions): Promise<readonly string[]>;
}

/** How a cleanup is done. */
export interface CleanupOptions {
  /** Only say what would be removed. */
  readonly dryRun: boolean;
  /** Given where `prepare` was not called before: `flanneld cleanup`, after the daemon has ended. */
  readonly host?: Host;
}

/** Types a plugin's default export: `export default defineBackend({ … })`. */
export function defineBackend<Options>(plugin: BackendPlugin<Options>): BackendPlugin<Options> {
  return plugin;
}
