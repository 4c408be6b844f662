import type { ExternalInterface, HostFacts } from "../../../plugins/sdk/facts.ts";
import type { Subnets } from "../../lease/lease.ts";
import type { Prefix } from "../../net/prefix.ts";
import { type Kernel, ROUTE_PROTOCOL } from "../../netlink/kernel.ts";
import type { RouteObject } from "../../netlink/objects.ts";
import { Fault } from "../../observe/fault.ts";
import type { Log } from "../../observe/log.ts";
import { listenForBackend } from "../active-notices.ts";
import { routeObject } from "../actual.ts";
import { gatherFacts } from "../facts.ts";
import { equalObjects, identityOf } from "../identity.ts";
import { removeStaleDevices, removeStaleRoutes } from "../stale.ts";
import { removeStalePolicies } from "../stale-policies.ts";

export interface HostSideInput {
  readonly kernel: Kernel;
  readonly external: ExternalInterface;
  /** Cluster networks now and of the last run. */
  readonly networks: readonly Prefix[];
  /** What the operator wants in the kernel (a blackhole for the own subnet). */
  readonly extras?: (subnets: Subnets) => readonly RouteObject[];
  readonly log: Log;
}

/** What a look at the host found. */
export interface HostState {
  /** Of the external interface, which pods get as it is. */
  readonly mtu: number;
  /** Routes that had to be written again. */
  readonly repaired: number;
}

/** What a cloud backend has on the host: nothing but what the operator wants beside, and the interface's MTU. */
export class HostSide {
  readonly #input: HostSideInput;
  #wanted: readonly RouteObject[] = [];

  constructor(input: HostSideInput) {
    this.#input = input;
  }

  /** The host as plugins see it. Throws Fault `INTERFACE_GONE`. */
  facts(): Promise<HostFacts> {
    const { kernel, external } = this.#input;
    return gatherFacts(kernel, { external, devices: [], usesRoutes: false });
  }

  /** Removes what other backends left, and makes what is wanted. Returns the MTU for pods. */
  async attach(subnets: Subnets): Promise<number> {
    const { kernel, networks, extras, log } = this.#input;
    await removeStaleDevices(kernel, new Set(), networks, log);
    const keeps = (dev: string | undefined) => dev === undefined && extras !== undefined;
    await removeStaleRoutes(kernel, { networks, keeps }, log);
    await removeStalePolicies(kernel, { networks, subnet: subnets.ipv4 }, log);
    this.#wanted = extras?.(subnets) ?? [];
    await kernel.apply(this.#wanted.map((object) => ({ action: "put", object })));
    return (await this.facts()).external.mtu;
  }

  /** Compares with what is wanted, and repairs it. Throws a Fault when that cannot be done. */
  async repair(): Promise<HostState> {
    const { mtu } = (await this.facts()).external;
    const missing = await this.#missing();
    const [failure] = await this.#input.kernel.apply(missing.map((object) => ({ action: "put", object })));
    if (!failure) return { mtu, repaired: missing.length };
    throw new Fault("DATAPLANE_BROKEN", failure.text, { hint: "It is tried again by itself." });
  }

  /** Calls `disturbed` soon after the interface, or one of our routes, has changed. Works until aborted. */
  listen(disturbed: () => void, signal: AbortSignal): Promise<void> {
    const { kernel, log, external, networks } = this.#input;
    const concern = { devices: new Set<string>(), external: external.name, networks };
    return listenForBackend({ kernel, log, signal, concern, disturbed });
  }

  async #missing(): Promise<readonly RouteObject[]> {
    if (this.#wanted.length === 0) return [];
    const { kernel } = this.#input;
    const filter = { protocol: ROUTE_PROTOCOL };
    const there = [...(await kernel.routes(4, filter)), ...(await kernel.routes(6, filter))].map(routeObject);
    return this.#wanted.filter(
      (wanted) =>
        !there.some((object) => identityOf(object) === identityOf(wanted) && equalObjects(object, wanted)),
    );
  }
}
