import type { ExternalInterface, HostFacts } from "../../../plugins/sdk/facts.ts";
import type { Subnets } from "../../lease/lease.ts";
import type { Prefix } from "../../net/prefix.ts";
import type { Kernel } from "../../netlink/kernel.ts";
import type { RouteObject } from "../../netlink/objects.ts";
import type { Log } from "../../observe/log.ts";
import { listenForBackend } from "../active-notices.ts";
import { gatherFacts } from "../facts.ts";
import { KeptRoutes } from "../kept-routes.ts";
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
  readonly #kept: KeptRoutes;

  constructor(input: HostSideInput) {
    this.#input = input;
    this.#kept = new KeptRoutes(input.kernel);
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
    await this.#kept.want(extras?.(subnets) ?? []);
    return (await this.facts()).external.mtu;
  }

  /** Compares with what is wanted, and repairs it. Throws a Fault when that cannot be done. */
  async repair(): Promise<HostState> {
    const { mtu } = (await this.facts()).external;
    return { mtu, repaired: await this.#kept.repair() };
  }

  /** Calls `disturbed` soon after the interface, or one of our routes, has changed. Works until aborted. */
  listen(disturbed: () => void, signal: AbortSignal): Promise<void> {
    const { kernel, log, external, networks } = this.#input;
    const concern = { devices: new Set<string>(), external: external.name, networks };
    return listenForBackend({ kernel, log, signal, concern, disturbed });
  }
}
