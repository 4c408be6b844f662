import type { ExternalInterface, ForeignRoute, HostFacts } from "../../plugins/sdk/facts.ts";
import { type Kernel, ROUTE_PROTOCOL } from "../netlink/kernel.ts";
import type { LinkState, RouteState } from "../netlink/objects.ts";
import { Fault } from "../observe/fault.ts";

export interface FactsInput {
  /** The chosen interface; index, MTU and MAC are read anew each time. */
  readonly external: ExternalInterface;
  /** Names of the backend's devices. */
  readonly devices: readonly string[];
  /** Whether the backend looks at foreign routes. */
  readonly usesRoutes: boolean;
}

/** RTN_UNICAST (linux/rtnetlink.h). */
const UNICAST = 1;

/** Takes a snapshot of the host for a backend. Throws Fault `INTERFACE_GONE` when the external interface is gone. */
export async function gatherFacts(kernel: Kernel, input: FactsInput): Promise<HostFacts> {
  const external = await kernel.link(input.external.name);
  if (!external) {
    throw new Fault("INTERFACE_GONE", `interface ${input.external.name} does not exist any more`, {
      hint: "Peers are programmed again as soon as it is back.",
    });
  }
  const links: Record<string, LinkState> = {};
  for (const name of input.devices) {
    const link = await kernel.link(name);
    if (link) links[name] = link;
  }
  const routes = input.usesRoutes ? [...(await kernel.routes(4)), ...(await kernel.routes(6))] : [];
  return {
    external: {
      ...input.external,
      index: external.index,
      mtu: external.mtu,
      ...(external.mac === undefined ? {} : { mac: external.mac }),
    },
    links,
    routes: foreignRoutes(routes, new Set(input.devices)),
  };
}

/** The unicast routes in use that are not ours, the legs of multipath ones singly. */
export function foreignRoutes(
  routes: readonly RouteState[],
  ours: ReadonlySet<string>,
): readonly ForeignRoute[] {
  return routes
    .filter((route) => route.protocol !== ROUTE_PROTOCOL && route.type === UNICAST && !route.dead)
    .filter((route) => route.dev === undefined || !ours.has(route.dev))
    .toSorted((a, b) => a.metric - b.metric)
    .flatMap(({ dst, dev, via, hops }): readonly ForeignRoute[] =>
      (hops ?? [{ dev, via }]).map((hop) => ({
        dst,
        ...(hop.dev === undefined ? {} : { dev: hop.dev }),
        ...(hop.via === undefined ? {} : { via: hop.via }),
      })),
    );
}
