import ipaddr from "ipaddr.js";
import type { Host } from "../host.ts";

/** A host's kernel state as iproute2 prints it (`-j`); only the fields that are compared. */
export interface KernelDump {
  readonly links: readonly IpLink[];
  readonly addresses: readonly IpAddresses[];
  readonly routes: readonly IpRoute[];
  readonly neighbours: readonly IpNeighbour[];
  readonly fdb: readonly BridgeFdb[];
  readonly nexthops: readonly IpNexthop[];
}

interface IpLink {
  readonly ifname: string;
  readonly mtu: number;
  readonly address?: string;
  readonly flags: readonly string[];
  readonly linkinfo?: {
    readonly info_kind?: string;
    readonly info_data?: {
      readonly id?: number;
      readonly local?: string;
      readonly local6?: string;
      readonly link?: string;
      readonly learning?: boolean;
    };
  };
}

interface IpAddresses {
  readonly ifname: string;
  readonly addr_info: readonly {
    readonly family: string;
    readonly local: string;
    readonly prefixlen: number;
    readonly scope: string;
  }[];
}

interface IpRoute {
  readonly type?: string;
  readonly dst: string;
  readonly gateway?: string;
  readonly dev?: string;
  readonly protocol: string;
  readonly nhid?: number;
  readonly flags: readonly string[];
}

interface IpNeighbour {
  readonly dst: string;
  readonly dev: string;
  readonly lladdr?: string;
  readonly state: readonly string[];
}

interface BridgeFdb {
  readonly mac: string;
  readonly ifname: string;
  readonly dst?: string;
  readonly state?: string;
}

interface IpNexthop {
  readonly id: number;
  readonly protocol: string;
}

/** Mark of what the daemon made, as iproute2 prints it (`ip route show proto 140`). */
const OUR_PROTOCOL = "140";

const COMMANDS = [
  "ip -j -d link show",
  "ip -j address show",
  "ip -j -4 route show table main",
  "ip -j -6 route show table main",
  "ip -j neighbour show nud permanent",
  "bridge -j fdb show",
  "ip -j nexthop show",
];

/** Dumps a host in one process. */
export async function dumpKernel(host: Host): Promise<KernelDump> {
  const text = await host.namespace.exec(
    "sh",
    "-ec",
    COMMANDS.map((command) => `${command}; echo; echo "#"`).join("\n"),
  );
  const [links, addresses, routes4, routes6, neighbours, fdb, nexthops] = text
    .split("\n#\n")
    .map((part: string) => (part.trim() === "" ? [] : (JSON.parse(part) as unknown[])));
  return {
    links: (links ?? []) as IpLink[],
    addresses: (addresses ?? []) as IpAddresses[],
    routes: [...(routes4 ?? []), ...(routes6 ?? [])] as IpRoute[],
    neighbours: (neighbours ?? []) as IpNeighbour[],
    fdb: (fdb ?? []) as BridgeFdb[],
    nexthops: (nexthops ?? []) as IpNexthop[],
  };
}

/**
 * What of a dump is the daemon's, one line per object. Ours is what lies on a `flannel*` device, carries our route
 * protocol, or leads into `networks` without being the kernel's own connected route.
 */
export function describeActual(dump: KernelDump, networks: readonly string[]): string[] {
  const isOurs = (dev: string | undefined) => dev?.startsWith("flannel") === true;
  const leadsIn = (dst: string) => networks.some((network) => contains(network, dst));
  const used = new Set(dump.routes.map((route) => route.nhid));
  return [
    ...dump.links.filter((link) => isOurs(link.ifname)).map(describeLink),
    ...dump.addresses
      .filter((entry) => isOurs(entry.ifname))
      .flatMap((entry) =>
        entry.addr_info
          .filter((address) => address.scope !== "link")
          .map((address) => `address ${address.local}/${address.prefixlen} dev ${entry.ifname}`),
      ),
    ...dump.routes
      .filter((route) => route.protocol !== "kernel")
      .filter((route) => isOurs(route.dev) || route.protocol === OUR_PROTOCOL || leadsIn(route.dst))
      .map(describeRoute),
    ...dump.neighbours
      .filter((entry) => isOurs(entry.dev))
      .map(
        (entry) => `neighbour ${entry.dst} lladdr ${entry.lladdr} ${entry.state.join(",")} dev ${entry.dev}`,
      ),
    ...dump.fdb
      .filter((entry) => isOurs(entry.ifname) && entry.dst !== undefined)
      .map((entry) => `fdb ${entry.mac} dst ${entry.dst} ${entry.state ?? "learned"} dev ${entry.ifname}`),
    ...dump.nexthops
      .filter((nexthop) => nexthop.protocol === OUR_PROTOCOL && !used.has(nexthop.id))
      .map((nexthop) => `nexthop ${nexthop.id} used by no route`),
  ].sort();
}

function contains(network: string, dst: string): boolean {
  if (dst === "default") return false;
  const address = ipaddr.parse(dst.split("/")[0] ?? dst);
  const range = ipaddr.parseCIDR(network);
  return address.kind() === range[0].kind() && address.match(range);
}

function describeLink(link: IpLink): string {
  const data = link.linkinfo?.info_data ?? {};
  const vxlan = `id ${data.id} local ${data.local ?? data.local6} dev ${data.link} learning ${data.learning}`;
  return `link ${link.ifname} ${link.linkinfo?.info_kind} ${vxlan} address ${link.address} mtu ${link.mtu} ${
    link.flags.includes("UP") ? "up" : "down"
  }`;
}

function describeRoute(route: IpRoute): string {
  const parts = [
    route.type === undefined || route.type === "unicast" ? "route" : `route ${route.type}`,
    route.dst,
    ...(route.gateway === undefined ? [] : [`via ${route.gateway}`]),
    ...(route.dev === undefined ? [] : [`dev ${route.dev}`]),
    ...(route.flags.includes("onlink") ? ["onlink"] : []),
    ...route.flags.filter((flag) => flag === "dead" || flag === "linkdown"),
  ];
  return parts.join(" ");
}
