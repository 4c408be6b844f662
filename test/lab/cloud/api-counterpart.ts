import type { Host } from "../host.ts";
import type { CloudApi } from "./api.ts";
import type { Counterpart, CounterpartRoute } from "./counterpart.ts";
import type { Faults } from "./faults.ts";

/** A metadata service of one host. */
interface Metadata extends AsyncDisposable {
  broken: boolean;
}

/** A cloud in the lab: an API on the switch, a metadata service on every host. */
export abstract class ApiCounterpart<Api extends CloudApi, Service extends Metadata> implements Counterpart {
  abstract readonly backend: Readonly<Record<string, unknown>>;
  abstract readonly names: Counterpart["names"];
  abstract readonly errors: Counterpart["errors"];
  readonly api: Api;
  /** Of the hosts, in the order in which they joined. */
  readonly metadata: Service[] = [];

  constructor(api: Api) {
    this.api = api;
  }

  get faults(): Faults {
    return this.api.faults;
  }

  get calls(): readonly string[] {
    return this.api.calls;
  }

  get changes(): readonly string[] {
    return this.api.changes;
  }

  get ahead(): number {
    return this.api.ahead;
  }

  set ahead(ms: number) {
    this.api.ahead = ms;
  }

  /** By default the call's own, of the VPC service. */
  permissionsOf(call: string): readonly string[] {
    return [`vpc:${call}`];
  }

  env(_host: Host): Readonly<Record<string, string>> {
    return {};
  }

  breakMetadata(broken: boolean): void {
    for (const each of this.metadata) each.broken = broken;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const each of this.metadata) await each[Symbol.asyncDispose]();
    await this.api[Symbol.asyncDispose]();
  }

  abstract join(host: Host): Promise<string>;
  abstract routes(): readonly CounterpartRoute[];
  abstract addForeign(n?: number): void;
  abstract addNodeRoute(dst: string, gone?: boolean): void;
  abstract dropRoute(dst: string): void;
  abstract rotate(): void;
}
