import type { AddressObject, HostKernel, RouteObject, Subnets } from "flannel/sdk";
import { baseAddress, liesIn } from "./address.ts";
import type { Device, Family } from "./devices.ts";

/**
 * Metric of the guards: any other route to the same prefix wins. The kernel documentation's number for a last resort
 * (networking/vrf.rst), which routing daemons never take a route from.
 */
const GUARD_METRIC = 4_278_198_272;

/** RT_SCOPE_LINK (linux/rtnetlink.h): addresses the kernel gives by itself. */
const SCOPE_LINK = 253;
/** RTN_UNICAST, RTN_BLACKHOLE (linux/rtnetlink.h). */
const UNICAST = 1;
const BLACKHOLE = 6;
/** Of our routes (`ip route show proto 140`). */
const PROTOCOL = 140;

const HOST_LENGTH: Readonly<Record<Family, number>> = { ipv4: 32, ipv6: 128 };

/** A kernel whose routes and addresses are read and changed. */
type Kernel = Pick<HostKernel, "routes" | "addresses" | "apply">;

/**
 * `ip route replace blackhole NETWORK metric 4278198272`: what is for a pod of another host never takes the default
 * route, in clear, while the device or the route over it is missing. The node's own pods have longer prefixes.
 */
export function guardOf(network: string): RouteObject {
  return { kind: "route", blackhole: true, dst: network, dev: "", metric: GUARD_METRIC };
}

/** Puts the guards of the networks where they are missing. Throws what the kernel says against it. */
export async function ensureGuards(kernel: Kernel, networks: Subnets): Promise<void> {
  for (const [family, network] of entries(networks)) {
    if (await hasGuard(kernel, family, network)) continue;
    await put(kernel, guardOf(network));
  }
}

/** The networks that have a guard. */
export async function findGuards(kernel: Kernel, networks: Subnets): Promise<readonly string[]> {
  const found: string[] = [];
  for (const [family, network] of entries(networks)) {
    if (await hasGuard(kernel, family, network)) found.push(network);
  }
  return found;
}

/** Removes the guards of networks that are none of this host's any more; returns the networks that had one. */
export async function removeGuards(kernel: Kernel, networks: Subnets): Promise<readonly string[]> {
  const left = await findGuards(kernel, networks);
  await kernel.apply(left.map((network) => ({ action: "delete", object: guardOf(network) })));
  return left;
}

/** What lies on a device. */
export interface Layout {
  readonly networks: Subnets;
  /** Networks of the last run that are none any more. */
  readonly formerNetworks?: Subnets;
  readonly subnets: Subnets;
}

/**
 * `ip address add BASE/32 dev DEV`, `ip route replace NETWORK dev DEV`, per family the device carries; the address of a
 * former subnet and the route of a former network go. Returns what had to be changed, in words.
 */
export async function ensureLayout(
  kernel: Kernel,
  device: Device,
  { networks, formerNetworks = {}, subnets }: Layout,
): Promise<readonly string[]> {
  const { name: dev, carries } = device;
  const changed: string[] = [];
  const wanted = new Set(
    carries.flatMap((family) => {
      const subnet = subnets[family];
      return subnet === undefined ? [] : [`${baseAddress(subnet)}/${HOST_LENGTH[family]}`];
    }),
  );
  const ours = [...entries(networks), ...entries(formerNetworks)].map(([, network]) => network);
  const has = (await kernel.addresses(dev)).filter(({ scope }) => scope !== SCOPE_LINK);
  for (const address of wanted) {
    if (has.some((each) => each.address === address)) continue;
    await put(kernel, { kind: "address", dev, address });
    changed.push(`address ${address}`);
  }
  for (const { address } of has) {
    if (wanted.has(address) || !liesIn(baseAddress(address), ours)) continue;
    await kernel.apply([{ action: "delete", object: { kind: "address", dev, address } }]);
    changed.push(`former address ${address}`);
  }
  for (const family of carries) {
    const network = networks[family];
    if (network === undefined || (await hasRoute(kernel, family, network, dev))) continue;
    await put(kernel, { kind: "route", dst: network, dev });
    changed.push(`route ${network}`);
  }
  for (const [family, network] of entries(formerNetworks)) {
    if (!(await hasRoute(kernel, family, network, dev))) continue;
    await kernel.apply([{ action: "delete", object: { kind: "route", dst: network, dev } }]);
    changed.push(`former route ${network}`);
  }
  return changed;
}

async function hasGuard(kernel: Kernel, family: Family, network: string): Promise<boolean> {
  const routes = await kernel.routes(family === "ipv4" ? 4 : 6, { protocol: PROTOCOL });
  return routes.some(
    ({ dst, type, metric }) => dst === network && type === BLACKHOLE && metric === GUARD_METRIC,
  );
}

async function hasRoute(kernel: Kernel, family: Family, network: string, dev: string): Promise<boolean> {
  const routes = await kernel.routes(family === "ipv4" ? 4 : 6, { dev });
  return routes.some(
    ({ dst, type, via, protocol }) =>
      dst === network && type === UNICAST && via === undefined && protocol === PROTOCOL,
  );
}

async function put(kernel: Kernel, object: AddressObject | RouteObject): Promise<void> {
  const [failure] = await kernel.apply([{ action: "put", object }]);
  if (!failure) return;
  const what = object.kind === "address" ? `address ${object.address}` : `route ${object.dst}`;
  throw new Error(`cannot add the ${what}: ${failure.text}`);
}

function entries(networks: Subnets): readonly (readonly [Family, string])[] {
  return (["ipv4", "ipv6"] as const).flatMap((family) => {
    const network = networks[family];
    return network === undefined ? [] : [[family, network] as const];
  });
}
