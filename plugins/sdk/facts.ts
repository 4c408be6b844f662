import { containsAddress, type Prefix, parsePrefix } from "../../core/net/prefix.ts";
import type { LinkState } from "../../core/netlink/objects.ts";

/** The interface that carries traffic between hosts. */
export interface ExternalInterface {
  readonly name: string;
  readonly index: number;
  readonly mtu: number;
  readonly mac?: string;
  /** Addresses of the interface itself. */
  readonly ipv4?: string;
  readonly ipv6?: string;
  /** Addresses peers use: `--public-ip`/`--public-ipv6`, else those of the interface. */
  readonly publicIP?: string;
  readonly publicIPv6?: string;
}

/** A main-table route we did not make. */
export interface ForeignRoute {
  readonly dst: string;
  readonly dev?: string;
  readonly via?: string;
}

/** A snapshot of the host, plain data. Recomputed when the host changes; backends keep no copy. */
export interface HostFacts {
  readonly external: ExternalInterface;
  /** The devices of `links()` as the kernel has them, by name. Empty before they are made. */
  readonly links: Readonly<Record<string, LinkState>>;
  /** Foreign main-table routes of both families, for direct routing. */
  readonly routes: readonly ForeignRoute[];
}

const parsedRoutes = new WeakMap<
  readonly ForeignRoute[],
  readonly { route: ForeignRoute; prefix: Prefix }[]
>();

function parseRoutes(routes: readonly ForeignRoute[]): readonly { route: ForeignRoute; prefix: Prefix }[] {
  const known = parsedRoutes.get(routes);
  if (known) return known;
  const parsed = routes.flatMap((route) => {
    const prefix = parsePrefix(route.dst);
    return prefix ? [{ route, prefix }] : [];
  });
  parsed.sort((a, b) => b.prefix.length - a.prefix.length);
  parsedRoutes.set(routes, parsed);
  return parsed;
}

/**
 * The foreign route that `address` would take (longest prefix, first on a tie), undefined when there is none.
 * Equivalent of `ip route get`, without policy rules and without our own routes.
 */
export function nextHopTo(facts: HostFacts, address: string): ForeignRoute | undefined {
  return parseRoutes(facts.routes).find(({ prefix }) => containsAddress(prefix, address))?.route;
}

/** The device on whose link `address` lies (a route without gateway leads there), undefined when it is routed. */
export function isOnLink(facts: HostFacts, address: string): string | undefined {
  const route = nextHopTo(facts, address);
  return route && route.via === undefined ? route.dev : undefined;
}
