import type { RouteObject } from "flannel/sdk";
import type { FarEnd, OwnEnd } from "./tunnel.ts";

/** A route as far as it matters here. */
interface Route {
  readonly dst: string;
  readonly dev?: string;
  readonly via?: string;
  readonly src?: string;
  readonly metric?: number;
  /** RTN_*; 6 is a blackhole (linux/rtnetlink.h). */
  readonly type: number;
}

const RTN_BLACKHOLE = 6;

/**
 * Routes that let packets get as far as the policies, and nothing pass in clear: each peer's subnet lies on the link of
 * the interface (`ip route replace SUBNET dev INTERFACE src OWN`), so what no policy takes finds nobody there; the rest
 * of the cluster network is dropped (`ip route replace blackhole NETWORK`) in place of leaving by the default route.
 * The host's own packets get an address of its subnet, else no policy would be for them.
 */
export function routesFor(
  network: string,
  dev: string,
  { subnet }: OwnEnd,
  fars: readonly FarEnd[],
): readonly RouteObject[] {
  const src = baseAddress(subnet);
  return [
    { kind: "route", dst: network, dev: "", blackhole: true },
    ...fars.map((far): RouteObject => ({ kind: "route", dst: far.subnet, dev, src })),
  ];
}

/** The address part of CIDR text. */
export function baseAddress(subnet: string): string {
  return subnet.slice(0, subnet.indexOf("/"));
}

/** What makes the marked routes the wanted ones that lie in the cluster network, or start there: a lease may lie outside. */
export function planRoutes(
  actual: readonly Route[],
  wanted: readonly RouteObject[],
  isInNetwork: (cidr: string) => boolean,
): readonly { readonly action: "put" | "delete"; readonly object: RouteObject }[] {
  const there = new Set(actual.map(keyOfState));
  // What is there for a wanted destination is replaced by what is put, unless another backend gave it another metric.
  const asked = new Set(wanted.map(({ dst }) => dst));
  const isOurs = ({ dst, src = "" }: Route) => isInNetwork(dst) || isInNetwork(`${src}/32`);
  const stale = actual.filter((route) => !(asked.has(route.dst) && !route.metric) && isOurs(route));
  return [
    ...wanted
      .filter((route) => !there.has(keyOf(route)))
      .map((object) => ({ action: "put" as const, object })),
    ...stale.map((route) => ({ action: "delete" as const, object: objectOf(route) })),
  ];
}

function objectOf({ dst, dev = "", via, type, metric = 0 }: Route): RouteObject {
  const by = metric === 0 ? {} : { metric };
  if (type === RTN_BLACKHOLE) return { kind: "route", dst, dev: "", blackhole: true, ...by };
  return { kind: "route", dst, dev, ...(via === undefined ? {} : { via }), ...by };
}

function keyOf({ dst, dev, via = "", src = "", metric = 0, blackhole }: RouteObject): string {
  return `${dst} ${blackhole ? "blackhole" : dev} ${via} ${src} ${metric}`;
}

function keyOfState({ dst, dev = "", via = "", src = "", metric = 0, type }: Route): string {
  return `${dst} ${type === RTN_BLACKHOLE ? "blackhole" : dev} ${via} ${src} ${metric}`;
}
