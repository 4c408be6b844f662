import type { Prefix } from "../net/prefix.ts";
import { type BatchObject, type Kernel, type KernelChange, ROUTE_PROTOCOL } from "../netlink/kernel.ts";
import type { LinkState, NexthopState, RouteState } from "../netlink/objects.ts";
import { Fault } from "../observe/fault.ts";
import { idLiesIn, liesIn, routeObject } from "./actual.ts";
import { looksLikeOurs } from "./device-name.ts";
import { orderChanges } from "./order.ts";

/** What of ours the kernel holds: devices with all that lies on them, and what lies elsewhere. */
export interface Leftovers {
  readonly devices: readonly string[];
  /** Routes and nexthops that do not go with a device, and are marked as ours. */
  readonly objects: readonly BatchObject[];
}

/** `ip route`, `ip nexthop` and `ip link` as {@link chooseLeftovers} looks at them. */
export interface LeftoverDump {
  readonly links: readonly LinkState[];
  /** Devices and their addresses as CIDR text. */
  readonly addresses: readonly { readonly dev: string; readonly address: string; readonly scope: number }[];
  /** Routes of both families with our protocol number. */
  readonly routes: readonly RouteState[];
  /** All nexthop objects with our protocol number. */
  readonly nexthops: readonly NexthopState[];
}

/** RT_SCOPE_LINK (linux/rtnetlink.h): addresses the kernel gives by itself. */
const SCOPE_LINK = 253;

/** What is known about whose things may be on this host. */
export interface LeftoverScope {
  /** Networks of this daemon, undefined when nothing tells them: then all that carries our mark is meant. */
  readonly networks: readonly Prefix[] | undefined;
  /** Another daemon runs here: a device without any address may be one that it is about to use. */
  readonly shared: boolean;
}

/**
 * What is ours: devices named and made like ours that carry an address of our networks, a route with our protocol
 * number, or (a start that was cut off) no address at all; routes and nexthops with our protocol number in our
 * networks. Pure.
 */
export function chooseLeftovers(dump: LeftoverDump, { networks, shared }: LeftoverScope): Leftovers {
  const lies = (cidr: string) => networks === undefined || liesIn(cidr, networks);
  const routes = dump.routes.filter(({ dst }) => lies(dst));
  const marked = new Set(routes.map(({ dev }) => dev));
  const devices = dump.links
    .filter(looksLikeOurs)
    .filter(({ name }) => {
      if (marked.has(name)) return true;
      const own = dump.addresses.filter(({ dev, scope }) => dev === name && scope !== SCOPE_LINK);
      if (own.length === 0) return networks !== undefined && !shared;
      return networks !== undefined && own.some(({ address }) => liesIn(address, networks));
    })
    .map(({ name }) => name);
  const gone = new Set<string | undefined>(devices);
  return {
    devices,
    objects: [
      ...routes.filter(({ dev }) => !gone.has(dev)).map(routeObject),
      ...dump.nexthops
        .filter(({ id, dev }) => !gone.has(dev) && (networks === undefined || idLiesIn(id, networks)))
        .map(({ id, dev = "", via = "" }): BatchObject => ({ kind: "nexthop", id, dev, via })),
    ],
  };
}

/** Looks for what is ours in the kernel. */
export async function findLeftovers(kernel: Kernel, scope: LeftoverScope): Promise<Leftovers> {
  const filter = { protocol: ROUTE_PROTOCOL };
  const nexthops = await kernel.nexthops();
  const dump: LeftoverDump = {
    links: await kernel.links(),
    addresses: await kernel.addresses(),
    routes: [...(await kernel.routes(4, filter)), ...(await kernel.routes(6, filter))],
    nexthops: nexthops.filter(({ protocol }) => protocol === ROUTE_PROTOCOL),
  };
  return chooseLeftovers(dump, scope);
}

/**
 * `ip route delete`, `ip nexthop delete`, `ip link delete`: removes what was found; what is gone already is fine.
 * @throws Fault `CLEANUP_REFUSED` with the kernel's words for the first thing that it would not remove.
 */
export async function removeLeftovers(kernel: Kernel, { devices, objects }: Leftovers): Promise<void> {
  const [failure] = await kernel.apply(orderChanges([], objects));
  for (const name of devices) await kernel.deleteLink(name);
  if (!failure) return;
  throw new Fault(
    "CLEANUP_REFUSED",
    `the kernel does not remove ${describe(failure.change)}: ${failure.text}`,
    {
      hint: "Run it again; if that does not help, look at `ip route show proto 140` and `ip nexthop show proto 140`.",
    },
  );
}

function describe({ object }: KernelChange): string {
  return object.kind === "nexthop"
    ? `nexthop ${object.id}`
    : `${object.kind} ${"dst" in object ? object.dst : ""}`;
}
