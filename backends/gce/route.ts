import type { CloudRoute } from "flannel/sdk";
import { lastPart } from "./metadata.ts";

/** The part of a `Route` of the Compute API (compute/v1) that is used. */
export interface ApiRoute {
  readonly name: string;
  readonly network: string;
  readonly destRange?: string;
  readonly nextHopInstance?: string;
  readonly nextHopNetwork?: string;
  readonly nextHopIp?: string;
  readonly nextHopGateway?: string;
  readonly nextHopIlb?: string;
  readonly nextHopVpnTunnel?: string;
  readonly nextHopPeering?: string;
  readonly nextHopHub?: string;
  readonly warnings?: readonly { readonly code?: string }[];
}

/** `10.5.1.0/24` → `flannel-10-5-1-0-24`, as upstream names it: by its name a route is known as ours. */
export function routeName(dst: string): string {
  return `flannel-${dst.replaceAll(/[./]/g, "-")}`;
}

/**
 * An instance as a next hop, `zone/name`. Its URL is written in several ways: with the project's id or number, of one
 * host name of the API or another.
 */
export function instanceOf(url: string): string {
  const [, zone, name] = /\/zones\/([^/]+)\/instances\/([^/]+)$/.exec(url) ?? [];
  return zone === undefined ? url : `${zone}/${name}`;
}

/** Warnings of a route whose next hop does not exist (compute/v1, `Route.warnings[].code`). */
const GONE: ReadonlySet<string> = new Set(["NEXT_HOP_INSTANCE_NOT_FOUND", "NEXT_HOP_ADDRESS_NOT_ASSIGNED"]);

/**
 * A route as core plans with it. One of another network is foreign, and no prefix of ours: it counts towards the quota,
 * which is the project's.
 */
export function toRoute(route: ApiRoute, network: string): CloudRoute {
  const { name, destRange = "", nextHopInstance, nextHopIp } = route;
  const isElsewhere = lastPart(route.network) !== network;
  const isOurs =
    !isElsewhere && (nextHopInstance ?? nextHopIp) !== undefined && name === routeName(destRange);
  const isGone = route.warnings?.some(({ code = "" }) => GONE.has(code)) === true;
  return {
    dst: isElsewhere ? `${destRange} in ${lastPart(route.network)}` : destRange,
    target: nextHopInstance === undefined ? otherTarget(route) : instanceOf(nextHopInstance),
    kind: isOurs ? "node" : "foreign",
    state: isGone ? "blackhole" : "active",
    marked: isOurs,
    id: name,
    // Routes of subnets and of peerings are nobody's doing.
    ...(route.nextHopNetwork !== undefined || route.nextHopPeering !== undefined ? { uncounted: true } : {}),
  };
}

function otherTarget(route: ApiRoute): string {
  const {
    nextHopIp,
    nextHopGateway,
    nextHopIlb,
    nextHopVpnTunnel,
    nextHopPeering,
    nextHopNetwork,
    nextHopHub,
  } = route;
  const target =
    nextHopIp ??
    nextHopGateway ??
    nextHopIlb ??
    nextHopVpnTunnel ??
    nextHopPeering ??
    nextHopHub ??
    nextHopNetwork;
  return target === undefined ? "" : lastPart(target);
}
