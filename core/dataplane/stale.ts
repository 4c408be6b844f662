import { containsPrefix, type Prefix, parsePrefix } from "../net/prefix.ts";
import { type Kernel, ROUTE_PROTOCOL } from "../netlink/kernel.ts";
import type { LinkState, RouteState } from "../netlink/objects.ts";
import type { Log } from "../observe/log.ts";
import { idLiesIn, liesIn, routeObject } from "./actual.ts";
import { findStaleDevices } from "./device.ts";
import { orderChanges } from "./order.ts";

/** Kinds of device that only core makes; the others may belong to a backend that acts itself. */
const CORE_KINDS: ReadonlySet<string> = new Set(["vxlan", "ipip"]);

/**
 * `ip link delete`: removes devices an earlier configuration of this very network left behind, and says so. `wanted`
 * are the devices of the backend in force; undefined for one that does not tell them: then only those go that core
 * made itself.
 */
export async function removeStaleDevices(
  kernel: Kernel,
  wanted: ReadonlySet<string> | undefined,
  networks: readonly Prefix[],
  log: Log,
): Promise<void> {
  const inOurs = (await kernel.addresses()).filter(({ address }) => {
    const prefix = parsePrefix(address);
    return prefix !== undefined && networks.some((network) => containsPrefix(network, prefix));
  });
  const devices = new Set(inOurs.map((address) => address.dev));
  const links = (await kernel.links()).filter((link) => wanted !== undefined || isOfCore(link));
  for (const name of findStaleDevices(links, wanted ?? new Set(), devices)) {
    await kernel.deleteLink(name);
    log.info(`removed device ${name}, left by an earlier configuration`);
  }
}

function isOfCore({ type }: LinkState): boolean {
  return type !== undefined && CORE_KINDS.has(type);
}

/** Whose routes are in question, and who is asked. */
export interface StaleRoutes {
  /** Networks now and of the last run. */
  readonly networks: readonly Prefix[];
  /** Whether the backend in force may have routes of ours on a device (undefined: on none, as a blackhole is). */
  readonly keeps: (dev: string | undefined) => boolean;
  /** Whether it may have nexthop objects on a device; as for routes when absent. */
  readonly keepsNexthops?: (dev: string | undefined) => boolean;
}

/**
 * `ip route delete`, `ip nexthop delete`: removes routes and nexthop objects with our mark in our networks that lie
 * where the backend in force has none: another backend left them, and a longer prefix of theirs would win over its
 * routes. Says how many.
 */
export async function removeStaleRoutes(
  kernel: Kernel,
  { networks, keeps, keepsNexthops = keeps }: StaleRoutes,
  log: Log,
): Promise<void> {
  const marked = [
    ...(await kernel.routes(4, { protocol: ROUTE_PROTOCOL })),
    ...(await kernel.routes(6, { protocol: ROUTE_PROTOCOL })),
  ];
  const routes = marked.filter((route) => liesIn(route.dst, networks) && !keeps(deviceOf(route)));
  const nexthops = (await kernel.nexthops()).filter(
    ({ id, dev, protocol }) => protocol === ROUTE_PROTOCOL && idLiesIn(id, networks) && !keepsNexthops(dev),
  );
  if (routes.length + nexthops.length === 0) return;
  await kernel.apply(
    orderChanges(
      [],
      [
        ...routes.map(routeObject),
        ...nexthops.map(({ id, dev = "", via = "" }) => ({ kind: "nexthop", id, dev, via }) as const),
      ],
    ),
  );
  const number = routes.length === 1 ? "1 route" : `${routes.length} routes`;
  log.info(`removed ${number}, left by an earlier configuration`);
}

/** RTN_UNICAST (linux/rtnetlink.h). What refuses packets is on no device, though IPv6's are shown on the loopback. */
const UNICAST = 1;

function deviceOf({ type, dev }: RouteState): string | undefined {
  return type === UNICAST ? dev : undefined;
}
