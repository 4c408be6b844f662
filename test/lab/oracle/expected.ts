import ipaddr from "ipaddr.js";
import { type Host, UNDERLAY } from "../host.ts";
import { readSubnetFile } from "../subnet-file.ts";
import type { KernelDump } from "./actual.ts";
import type { StoredConfig, StoredFamily, StoredLease } from "./leases.ts";

/** Bytes a tunnel takes: outer Ethernet-less IP + UDP + VXLAN + inner Ethernet (RFC 7348): 20 or 40, 8, 8, 14. */
const VXLAN_OVERHEAD = { ipv4: 50, ipv6: 70 } as const;

type FamilyName = "ipv4" | "ipv6";

/**
 * What a host must have according to etcd, in the words of `describeActual`. Written from the documented
 * behaviour and the address plan alone, with none of the daemon's code, so that both can be wrong only separately.
 * Knows vxlan (with DirectRouting), host-gw and alloc; throws for the others.
 */
export async function describeExpected(
  host: Host,
  dump: KernelDump,
  config: StoredConfig,
  leases: readonly StoredLease[],
): Promise<string[]> {
  const file = await readSubnetFile(host.subnetFile);
  const lines: string[] = [];
  for (const name of ["ipv4", "ipv6"] as const) {
    const gateway = name === "ipv4" ? file.subnet : file.ipv6Subnet;
    if (gateway === undefined) continue;
    const own = leases.find((lease) => lease[name] !== undefined && holds(lease[name].subnet, gateway));
    if (own?.[name] === undefined) throw new Error(`${host.name}: etcd has no lease for its ${gateway}`);
    const peers = leases
      .filter((lease) => lease !== own && lease.backendType === own.backendType)
      .map((lease) => lease[name])
      .filter((peer) => peer?.publicIP !== undefined) as PublishedFamily[];
    lines.push(...describeFamily(host, dump, config, name, own[name], peers));
  }
  return lines.sort();
}

type PublishedFamily = StoredFamily & { readonly publicIP: string };

function describeFamily(
  host: Host,
  dump: KernelDump,
  config: StoredConfig,
  name: FamilyName,
  own: StoredFamily,
  peers: readonly PublishedFamily[],
): string[] {
  switch (config.type) {
    case "vxlan": {
      const dev = name === "ipv4" ? `flannel.${config.vni}` : `flannel-v6.${config.vni}`;
      const direct = (peer: PublishedFamily) => config.directRouting && onLink(dump, peer.publicIP);
      return [
        describeDevice(host, dump, config, name, dev, own),
        `address ${base(own.subnet)}/${name === "ipv4" ? 32 : 128} dev ${dev}`,
        ...peers.flatMap((peer) =>
          direct(peer)
            ? [`route ${peer.subnet} via ${peer.publicIP} dev ${UNDERLAY}`]
            : [
                `route ${peer.subnet} via ${base(peer.subnet)} dev ${dev} onlink`,
                `neighbour ${base(peer.subnet)} lladdr ${peer.mac} PERMANENT dev ${dev}`,
                `fdb ${peer.mac} dst ${peer.publicIP} permanent dev ${dev}`,
              ],
        ),
      ];
    }
    case "host-gw":
      return peers
        .filter((peer) => onLink(dump, peer.publicIP))
        .map((peer) => `route ${peer.subnet} via ${peer.publicIP} dev ${UNDERLAY}`);
    case "alloc":
      return [];
    default:
      throw new Error(`the oracle does not know the backend ${config.type}`);
  }
}

function describeDevice(
  host: Host,
  dump: KernelDump,
  config: StoredConfig,
  name: FamilyName,
  dev: string,
  own: StoredFamily,
): string {
  const underlay = dump.links.find((link) => link.ifname === UNDERLAY);
  if (underlay === undefined) throw new Error(`${host.name} has no ${UNDERLAY}`);
  const local = underlayAddresses(dump).find((address) => address.kind === name)?.local;
  return `link ${dev} vxlan id ${config.vni} local ${local} dev ${UNDERLAY} learning false address ${own.mac} mtu ${
    underlay.mtu - VXLAN_OVERHEAD[name]
  } up`;
}

function underlayAddresses(dump: KernelDump): { kind: FamilyName; local: string; prefixlen: number }[] {
  return dump.addresses
    .filter((entry) => entry.ifname === UNDERLAY)
    .flatMap((entry) => entry.addr_info)
    .filter((address) => address.scope === "global")
    .map(({ family, local, prefixlen }) => ({ kind: family === "inet" ? "ipv4" : "ipv6", local, prefixlen }));
}

function onLink(dump: KernelDump, address: string): boolean {
  return underlayAddresses(dump).some(({ local, prefixlen }) => holds(`${local}/${prefixlen}`, address));
}

function holds(subnet: string, addressOrCidr: string): boolean {
  const range = ipaddr.parseCIDR(subnet);
  const address = ipaddr.parse(addressOrCidr.split("/")[0] ?? addressOrCidr);
  return address.kind() === range[0].kind() && address.match(range);
}

function base(subnet: string): string {
  return subnet.split("/")[0] ?? subnet;
}
