import type { LeaseData } from "../../core/lease/lease.ts";
import type { Finding } from "../../core/observe/finding.ts";
import type { HostFacts } from "./facts.ts";

/**
 * A backend without a data path of its own: a cloud's route table carries each node's subnet. The plugin reads the
 * tables and makes single changes; core compares, plans, applies, verifies, repairs on a slow timer, and removes what
 * nodes that are gone left behind. Everything but `discover`, `read` and `apply` is pure.
 */
export interface CloudBackend {
  readonly mode: "cloud";
  /** ms between two looks at the tables when nothing is wrong. */
  readonly interval: number;
  /** Removal of routes of nodes that are gone, absent when it is switched off. */
  readonly stale?: {
    /** ms for which no lease may have had the subnet. */
    readonly grace: number;
    /** Whether only routes with our mark may be removed: for clouds whose routes can carry one. */
    readonly markedOnly: boolean;
  };
  /** What peers must know. */
  publish(facts: HostFacts): LeaseData;
  /** Finds out where this node is, and opens the API. Called again after every failure. Rejects with {@link CloudError}. */
  discover(host: CloudHost, facts: HostFacts): Promise<CloudPlace>;
  /** Reads settings and tables of the place discovered last, all pages. Rejects with {@link CloudError}. */
  read(): Promise<CloudReading>;
  /** Makes one change and waits until the cloud says that it is done. Rejects with {@link CloudError}. */
  apply(change: CloudChange): Promise<void>;
}

/** Options that all cloud backends have, as the operator gives them: times in seconds. */
export interface CloudSchedule {
  readonly CheckInterval: number;
  readonly RemoveStaleRoutes: boolean;
  readonly StaleRouteGrace: number;
}

/** What follows from {@link CloudSchedule} for the backend; `markedOnly` as in {@link CloudBackend.stale}. Pure. */
export function cloudSchedule(
  { CheckInterval, RemoveStaleRoutes, StaleRouteGrace }: CloudSchedule,
  markedOnly: boolean,
): Pick<CloudBackend, "interval" | "stale"> {
  const interval = CheckInterval * 1_000;
  return RemoveStaleRoutes
    ? { interval, stale: { grace: StaleRouteGrace * 1_000, markedOnly } }
    : { interval };
}

/** Host services for a cloud backend. */
export interface CloudHost {
  readonly log: {
    info(message: string, fields?: Readonly<Record<string, unknown>>): void;
    warn(message: string, fields?: Readonly<Record<string, unknown>>): void;
  };
  /** Aborted when the daemon stops. */
  readonly signal: AbortSignal;
}

/** Where this node is. */
export interface CloudPlace {
  /** For people: region, instance, interface. */
  readonly summary: string;
  /** This node as {@link CloudRoute.target} names it. */
  readonly self: string;
}

/** What the cloud has now. */
export interface CloudReading {
  readonly tables: readonly CloudTable[];
  /** Switches of the cloud that decide whether packets arrive. */
  readonly settings?: readonly CloudSetting[];
  /** What is wrong that no change of ours can cure. */
  readonly findings?: readonly Finding[];
}

/** One route table. */
export interface CloudTable {
  readonly id: string;
  readonly routes: readonly CloudRoute[];
  /** Most routes of one family it may hold, as far as that is known. */
  readonly limit?: number;
}

/** One entry of a route table. */
export interface CloudRoute {
  /** Canonical CIDR text; entries without one (prefix lists) are left out of a reading, or given their own name. */
  readonly dst: string;
  /** The cloud's id of the next hop. */
  readonly target: string;
  /** `node`: the next hop is of the kind that nodes are. `foreign`: anything else; it is never touched. */
  readonly kind: "node" | "foreign";
  /** `blackhole`: the next hop does not exist any more. `disabled`: not in force. `pending`: not in force yet. */
  readonly state: "active" | "blackhole" | "disabled" | "pending";
  /** Whether it carries our mark (name, description); absent where the cloud's routes can carry none. */
  readonly marked?: boolean;
  /** Whether it does not count towards the limit of the table. */
  readonly uncounted?: boolean;
  /** The cloud's own name of the entry, where destination and table do not name it. */
  readonly id?: string;
}

/** A switch outside the tables, such as AWS's source/destination check. */
export interface CloudSetting {
  readonly name: string;
  /** What it is a switch of: `eni-0123`. */
  readonly subject: string;
  readonly wanted: string;
  readonly actual: string;
}

/** One change, as planned. */
export type CloudChange =
  | { readonly action: "create"; readonly table: string; readonly dst: string; readonly target: string }
  | {
      readonly action: "replace";
      readonly table: string;
      readonly dst: string;
      readonly target: string;
      /** The entry as it stands. */
      readonly former: CloudRoute;
    }
  | { readonly action: "delete"; readonly table: string; readonly dst: string; readonly former: CloudRoute }
  /** This node's route as somebody else made it (upstream's daemon) gets our mark; it leads where it should already. */
  | { readonly action: "mark"; readonly table: string; readonly dst: string; readonly former: CloudRoute }
  | { readonly action: "set"; readonly setting: CloudSetting };

/**
 * Why a call failed. `denied`: a permission is missing. `credentials`: there are none, or they are not valid (any
 * more). `throttled`: too many calls. `missing`: what the config or the metadata names does not exist. `full`: a limit
 * is reached; tried again when the table changes, else rarely. `clock`: this host's clock is off. `metadata`: the metadata
 * service does not answer. `unreachable`: the API does not answer, or fails itself. `refused`: everything else.
 */
export type CloudErrorKind =
  | "denied"
  | "credentials"
  | "throttled"
  | "missing"
  | "full"
  | "clock"
  | "metadata"
  | "unreachable"
  | "refused";

/** A call to a cloud that failed. Never holds a secret or a signed request. */
export class CloudError extends Error {
  override readonly name = "CloudError";
  readonly kind: CloudErrorKind;
  /** The call: `ec2:CreateRoute`, `GET …/instance-id`. */
  readonly call: string;
  /** What to do about it: the permission, or the place in the console. */
  readonly fix: string;

  /** `message` is one clause in the cloud's words. */
  constructor(kind: CloudErrorKind, call: string, message: string, fix: string) {
    super(message);
    this.kind = kind;
    this.call = call;
    this.fix = fix;
  }
}
