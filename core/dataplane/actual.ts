import { containsPrefix, type Prefix, parsePrefix } from "../net/prefix.ts";
import { type BatchObject, type Kernel, ROUTE_PROTOCOL } from "../netlink/kernel.ts";
import type { RouteState } from "../netlink/objects.ts";
import { equalObjects, identityOf } from "./identity.ts";

/** What on this host may be ours. */
export interface OwnedScope {
  /** Devices that are wholly ours. */
  readonly devices: readonly string[];
  /** Cluster networks now and before the last restart: our routes and nexthops lie inside them. */
  readonly networks: readonly Prefix[];
  /** The backend lets the kernel learn forwarding entries (`Learning`): those are left alone then. */
  readonly learning: boolean;
}

/** Ours as the kernel has it, by identity, and what it has that we must not touch. */
export interface ActualState {
  readonly objects: ReadonlyMap<string, BatchObject>;
  /** Further objects of an identity already in `objects`: routes and forwarding entries can be appended. */
  readonly surplus: readonly BatchObject[];
  readonly foreignNexthops: ReadonlySet<number>;
}

/** NUD_PERMANENT (linux/neighbour.h). */
const PERMANENT = 0x80;
/** RTPROT_KERNEL (linux/rtnetlink.h): connected and link-local routes the kernel makes itself. */
const PROTOCOL_KERNEL = 2;
/** RTN_UNICAST, RTN_BLACKHOLE. */
const UNICAST = 1;
const BLACKHOLE = 6;

/** Reads what is ours from the kernel; missing devices count as empty. */
export async function readActual(kernel: Kernel, scope: OwnedScope): Promise<ActualState> {
  const objects = new Map<string, BatchObject>();
  const surplus: BatchObject[] = [];
  const add = (object: BatchObject) => {
    const identity = identityOf(object);
    const known = objects.get(identity);
    if (known === undefined) objects.set(identity, object);
    else if (!equalObjects(known, object)) surplus.push(object);
  };
  for (const family of [4, 6] as const) {
    for (const route of await kernel.routes(family, { protocol: ROUTE_PROTOCOL })) {
      const written = isPlain(route) || route.type === BLACKHOLE;
      const ours = liesIn(route.dst, scope.networks) || scope.devices.includes(route.dev ?? "");
      if (written && ours) add(routeObject(route));
    }
  }
  for (const dev of scope.devices) await readDevice(kernel, dev, scope, add);
  return { objects, surplus, foreignNexthops: await readNexthops(kernel, scope, add) };
}

/** Unicast with one leg at most: what we (or upstream) could have written on a device. */
function isPlain(route: RouteState): boolean {
  return route.type === UNICAST && route.hops === undefined;
}

/**
 * Whether a route on one of our devices is ours: it carries our mark, or it leads into one of our networks as those
 * that upstream wrote before we took the device over. Others' routes over our device are theirs.
 */
export function isOursOnDevice(route: RouteState, networks: readonly Prefix[]): boolean {
  if (!isPlain(route) || route.protocol === PROTOCOL_KERNEL) return false;
  return route.protocol === ROUTE_PROTOCOL || liesIn(route.dst, networks);
}

async function readDevice(
  kernel: Kernel,
  dev: string,
  scope: OwnedScope,
  add: (object: BatchObject) => void,
): Promise<void> {
  for (const family of [4, 6] as const) {
    // Those with our mark have been read already.
    for (const route of await kernel.routes(family, { dev, otherThan: ROUTE_PROTOCOL })) {
      if (isOursOnDevice(route, scope.networks)) add(routeObject(route));
    }
    for (const neighbour of await kernel.neighbours(family, dev)) {
      if (neighbour.state & PERMANENT && neighbour.mac !== undefined) {
        add({ kind: "neighbour", dev, ip: neighbour.ip, mac: neighbour.mac });
      }
    }
  }
  for (const entry of await kernel.fdb(dev)) {
    if (entry.dst === undefined || (scope.learning && !(entry.state & PERMANENT))) continue;
    add({ kind: "fdb", dev, mac: entry.mac, dst: entry.dst });
  }
  for (const address of await kernel.addresses(dev)) {
    if (liesIn(address.address, scope.networks)) add({ kind: "address", dev, address: address.address });
  }
}

async function readNexthops(
  kernel: Kernel,
  scope: OwnedScope,
  add: (object: BatchObject) => void,
): Promise<ReadonlySet<number>> {
  const foreign = new Set<number>();
  for (const nexthop of await kernel.nexthops()) {
    if (nexthop.protocol !== ROUTE_PROTOCOL) foreign.add(nexthop.id);
    else if (nexthop.dev !== undefined && nexthop.via !== undefined && idLiesIn(nexthop.id, scope.networks)) {
      const { id, dev, via, onlink } = nexthop;
      add({ kind: "nexthop", id, dev, via, ...(onlink ? { onlink } : {}) });
    }
  }
  return foreign;
}

/** Ids of the nexthop objects that somebody else made. */
export async function listForeignNexthops(kernel: Kernel): Promise<Set<number>> {
  const foreign = (await kernel.nexthops()).filter(({ protocol }) => protocol !== ROUTE_PROTOCOL);
  return new Set(foreign.map(({ id }) => id));
}

/** The object that would have made this route; one of another protocol keeps its mark, so it equals none of ours. */
export function routeObject(route: RouteState): BatchObject {
  const metric = route.metric > 0 ? { metric: route.metric } : {};
  if (route.nexthop !== undefined && route.protocol === ROUTE_PROTOCOL) {
    return { kind: "nexthop-route", dst: route.dst, nexthop: route.nexthop, ...metric };
  }
  return {
    kind: "route",
    ...(route.type === BLACKHOLE ? { blackhole: true } : {}),
    dst: route.dst,
    // The kernel shows an IPv6 blackhole on the loopback device.
    dev: (route.type === BLACKHOLE ? undefined : route.dev) ?? "",
    ...(route.via === undefined ? {} : { via: route.via }),
    ...(route.onlink ? { onlink: true } : {}),
    ...(route.src === undefined ? {} : { src: route.src }),
    ...(route.protocol === ROUTE_PROTOCOL ? {} : { protocol: route.protocol }),
    ...metric,
  };
}

/** Whether CIDR text lies in one of the networks. */
export function liesIn(cidr: string, networks: readonly Prefix[]): boolean {
  const prefix = parsePrefix(cidr);
  return prefix !== undefined && networks.some((network) => containsPrefix(network, prefix));
}

/** Whether the id of a nexthop object, which is the base address of a subnet, lies in one of the networks. */
export function idLiesIn(id: number, networks: readonly Prefix[]): boolean {
  const prefix: Prefix = { family: 4, base: id, length: 32 };
  return networks.some((network) => containsPrefix(network, prefix));
}
