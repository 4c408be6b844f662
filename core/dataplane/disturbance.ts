import type { Prefix } from "../net/prefix.ts";
import { type BatchObject, type Notice, ROUTE_PROTOCOL } from "../netlink/kernel.ts";
import type { RouteState } from "../netlink/objects.ts";
import { isOursOnDevice, liesIn, routeObject } from "./actual.ts";
import { equalObjects, identityOf, routeIdentity } from "./identity.ts";

/** What the wanted state looks like to a notice. */
export interface Expectation {
  /** The wanted object of an identity. */
  get(identity: string): BatchObject | undefined;
  /** Our devices. */
  readonly devices: ReadonlySet<string>;
  /** The external interface. */
  readonly external: string;
  /** Cluster networks. */
  readonly networks: readonly Prefix[];
  /** Whether foreign routes matter (direct routing). */
  readonly usesRoutes: boolean;
  /** Whether learned forwarding entries are allowed. */
  readonly learning: boolean;
}

/** NUD_PERMANENT (linux/neighbour.h). */
const PERMANENT = 0x80;

/**
 * Whether a notice shows something other than what we want, so that the actual state has to be looked at. The
 * echoes of our own writes agree with the wanted state and are no disturbance.
 */
export function isDisturbance(notice: Notice, expected: Expectation): boolean {
  switch (notice.kind) {
    case "link":
      return expected.devices.has(notice.link.name) || notice.link.name === expected.external;
    case "address": {
      const { dev, address } = notice.address;
      if (dev === expected.external) return true;
      if (!expected.devices.has(dev)) return false;
      if (!liesIn(address, expected.networks)) return false;
      return disagrees(notice.action, { kind: "address", dev, address }, expected);
    }
    case "neighbour": {
      const { dev, ip, mac, state } = notice.neighbour;
      if (!expected.devices.has(dev)) return false;
      const permanent = (state & PERMANENT) !== 0;
      const object: BatchObject = { kind: "neighbour", dev, ip, mac: permanent ? (mac ?? "") : "" };
      if (!permanent && notice.action === "put" && !expected.get(identityOf(object))) return false;
      return disagrees(notice.action, object, expected);
    }
    case "fdb": {
      const { dev, mac, dst, state } = notice.fdb;
      if (!expected.devices.has(dev) || dst === undefined) return false;
      if (expected.learning && !(state & PERMANENT)) return false;
      return disagrees(notice.action, { kind: "fdb", dev, mac, dst }, expected);
    }
    case "nexthop": {
      const { id, dev, via, onlink, protocol } = notice.nexthop;
      const object: BatchObject = { kind: "nexthop", id, dev: dev ?? "", via: via ?? "", onlink };
      const wanted = expected.get(identityOf(object));
      if (notice.action === "put" && protocol !== ROUTE_PROTOCOL) return wanted !== undefined;
      // A put of ours that is not wanted any more is an echo that came late, or another daemon's.
      return wanted !== undefined && disagrees(notice.action, object, expected);
    }
    case "route":
      return isRouteDisturbance(notice.action, notice.route, expected);
  }
}

function isRouteDisturbance(action: "put" | "delete", route: RouteState, expected: Expectation): boolean {
  const wanted = expected.get(routeIdentity(route.dst, route.metric));
  if (wanted !== undefined) {
    if (action === "delete") return route.protocol === ROUTE_PROTOCOL;
    return !equalObjects(routeObject(route), wanted);
  }
  if (action === "put" && route.dev !== undefined && expected.devices.has(route.dev)) {
    return isOursOnDevice(route, expected.networks);
  }
  return expected.usesRoutes && route.protocol !== ROUTE_PROTOCOL;
}

function disagrees(action: "put" | "delete", object: BatchObject, expected: Expectation): boolean {
  const wanted = expected.get(identityOf(object));
  if (action === "delete") return wanted !== undefined;
  return wanted === undefined || !equalObjects(object, wanted);
}
