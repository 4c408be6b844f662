import type { Host } from "../host.ts";
import type { CloudFault, Faults } from "./faults.ts";

/** A route of a counterpart: `10.5.1.0/24 → eni-1`. */
export interface CounterpartRoute {
  readonly dst: string;
  readonly target: string;
}

/** What a cluster needs of the cloud it is in. */
export interface Cloud extends AsyncDisposable {
  /** The `Backend` of the network config. */
  readonly backend: Readonly<Record<string, unknown>>;
  /** Calls that arrived, in order, and those of them that change something. */
  readonly calls: readonly string[];
  readonly changes: readonly string[];
  /** Permissions that a call needs, in the cloud's words. */
  permissionsOf(call: string): readonly string[];
  /** Environment of the daemon on a host. */
  env(host: Host): Readonly<Record<string, string>>;
  /** Makes a host an instance of the cloud, with its metadata service. Returns its name as a next hop. */
  join(host: Host): Promise<string>;
}

/** What the tests that all clouds have to pass need of a cloud. */
export interface Counterpart extends Cloud {
  readonly faults: Faults;
  /** Names of calls, for faults; and of the permission to create a route, where that is another. */
  readonly names: {
    readonly read: string;
    readonly create: string;
    readonly remove: string;
    readonly permission: string;
  };
  /** How this cloud says that something is wrong. */
  readonly errors: {
    readonly throttled: CloudFault;
    readonly denied: CloudFault;
    readonly expired: CloudFault;
    readonly full: CloudFault;
  };
  /** All routes of the (one) table in use. */
  routes(): readonly CounterpartRoute[];
  /** Adds routes as others make them, that must stay: default route, gateway, and `n` to somebody's machine. */
  addForeign(n?: number): void;
  /** Adds a route as flanneld on another node makes it. `gone`: the node does not exist any more. */
  addNodeRoute(dst: string, gone?: boolean): void;
  /** Takes our mark from a route, as upstream's daemon makes it; absent where it makes them as we do. */
  unmark?(dst: string): void;
  isMarked?(dst: string): boolean;
  /** Takes all routes of a destination away behind everybody's back. */
  dropRoute(dst: string): void;
  /** ms by which the cloud's clock is ahead of the host's. */
  ahead: number;
  /** Gives the nodes other credentials; the ones they hold are not valid any more. */
  rotate(): void;
  /** Stops or resumes answering as a metadata service. */
  breakMetadata(broken: boolean): void;
}
