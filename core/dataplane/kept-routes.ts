import { type Kernel, ROUTE_PROTOCOL } from "../netlink/kernel.ts";
import type { RouteObject } from "../netlink/objects.ts";
import { describeError, Fault } from "../observe/fault.ts";
import { routeObject } from "./actual.ts";
import { equalObjects, identityOf } from "./identity.ts";

/** Routes beside those of a backend, which the operator wants (a blackhole for the own subnet). */
export class KeptRoutes {
  readonly #kernel: Pick<Kernel, "routes" | "apply">;
  #wanted: readonly RouteObject[] = [];

  constructor(kernel: Pick<Kernel, "routes" | "apply">) {
    this.#kernel = kernel;
  }

  /** `ip route replace …` of each; they are the ones to keep from now on. */
  async want(routes: readonly RouteObject[]): Promise<void> {
    this.#wanted = routes;
    await this.#kernel.apply(routes.map((object) => ({ action: "put", object })));
  }

  /** Writes again what is missing, and says how many were. Throws Fault `DATAPLANE_BROKEN` when the kernel refuses. */
  async repair(): Promise<number> {
    const missing = await this.#missing();
    if (missing.length === 0) return 0;
    const [failure] = await this.#kernel.apply(missing.map((object) => ({ action: "put", object })));
    if (!failure) return missing.length;
    throw new Fault("DATAPLANE_BROKEN", failure.text, { hint: "It is tried again by itself." });
  }

  /** As `repair`; says why it could not be done instead. */
  async tryRepair(): Promise<readonly string[]> {
    try {
      await this.repair();
      return [];
    } catch (error) {
      return [describeError(error)];
    }
  }

  async #missing(): Promise<readonly RouteObject[]> {
    if (this.#wanted.length === 0) return [];
    const filter = { protocol: ROUTE_PROTOCOL };
    const lists = [await this.#kernel.routes(4, filter), await this.#kernel.routes(6, filter)];
    const there = lists.flat().map(routeObject);
    return this.#wanted.filter(
      (wanted) =>
        !there.some((object) => identityOf(object) === identityOf(wanted) && equalObjects(object, wanted)),
    );
  }
}
