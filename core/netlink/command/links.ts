import { parseIPv4 } from "../../net/ipv4.ts";
import { readAddressAssignType } from "../assign-type.ts";
import type { IpipAttrs, LinkState, VxlanAttrs, WantedLink } from "../objects.ts";
import { flagOf, type Json, numberOf, recordOf, textOf, wordsOf } from "./json.ts";

/** The first multicast address, 224.0.0.0 (RFC 5771). */
const FIRST_MULTICAST = 0xe0000000;

/** Arguments of `ip` that create the device. */
export function createArguments(link: WantedLink): string[] {
  const { name, type, mtu } = link;
  return [
    ...["link", "add", "name", name],
    ...(mtu > 0 ? ["mtu", String(mtu)] : []),
    ...["txqueuelen", "0"],
    ...(link.type === "vxlan" ? ["address", link.mac] : []),
    ...["type", type],
    ...(link.type === "vxlan" ? vxlanArguments(link.vxlan) : []),
    ...(link.type === "ipip" ? ipipArguments(link.ipip) : []),
  ];
}

function ipipArguments({ local, remote, ttl, pmtudisc }: IpipAttrs): string[] {
  return [
    ...["local", local ?? "any", "remote", remote ?? "any"],
    ...["ttl", ttl ? String(ttl) : "inherit", "tos", "0"],
    pmtudisc ? "pmtudisc" : "nopmtudisc",
  ];
}

function vxlanArguments(vxlan: VxlanAttrs): string[] {
  const { vni, underlay, local, port, learning, gbp, group, l2miss } = vxlan;
  return [
    ...["id", String(vni)],
    ...(underlay === undefined ? [] : ["dev", underlay]),
    ...(local === undefined ? [] : ["local", local]),
    ...(group === undefined ? [] : [isMulticast(group) ? "group" : "remote", group]),
    ...(port === undefined || port <= 0 ? [] : ["dstport", String(port)]),
    learning ? "learning" : "nolearning",
    ...(l2miss ? ["l2miss"] : []),
    ...(gbp ? ["gbp"] : []),
  ];
}

function isMulticast(address: string): boolean {
  const ipv4 = parseIPv4(address);
  return ipv4 === undefined ? address.toLowerCase().startsWith("ff") : ipv4 >= FIRST_MULTICAST;
}

/** One record of `ip -j -d link show`; `indexOf` finds the index of a device the record names. */
export function decodeLink(
  record: Json,
  indexOf: (name: string) => number | undefined,
): LinkState | undefined {
  const name = textOf(record, "ifname");
  const index = numberOf(record, "ifindex");
  if (name === undefined || index === undefined) return undefined;
  const flags = wordsOf(record, "flags");
  const up = flags.includes("UP");
  const mac = textOf(record, "address");
  const info = recordOf(record, "linkinfo");
  const type = textOf(info, "info_kind");
  const lower = indexOf(textOf(record, "link") ?? "");
  const master = indexOf(textOf(record, "master") ?? "");
  const addressAssignType = type === "vxlan" ? readAddressAssignType(name, index) : undefined;
  return {
    name,
    index,
    ...(type === undefined ? {} : { type }),
    mtu: numberOf(record, "mtu") ?? 0,
    ...(mac !== undefined && mac.length === 17 ? { mac } : {}),
    up,
    // `ip` prints no RUNNING but its absence, as NO-CARRIER.
    running: up && !flags.includes("NO-CARRIER"),
    loopback: flags.includes("LOOPBACK"),
    ...(addressAssignType === undefined ? {} : { addressAssignType }),
    ...(lower === undefined ? {} : { lower }),
    ...(master === undefined ? {} : { master }),
    ...(type === "vxlan" ? { vxlan: decodeVxlan(recordOf(info, "info_data")) } : {}),
    ...(type === "ipip" ? { ipip: decodeIpip(recordOf(info, "info_data")) } : {}),
  };
}

function decodeIpip(data: Json): IpipAttrs {
  const [local, remote] = [textOf(data, "local"), textOf(data, "remote")];
  return {
    ...(local === undefined || local === "any" ? {} : { local }),
    ...(remote === undefined || remote === "any" ? {} : { remote }),
    ttl: numberOf(data, "ttl") ?? 0,
    pmtudisc: flagOf(data, "pmtudisc"),
  };
}

function decodeVxlan(data: Json): VxlanAttrs {
  const underlay = textOf(data, "link");
  const local = textOf(data, "local") ?? textOf(data, "local6");
  const group = ["group", "remote", "group6", "remote6"].map((key) => textOf(data, key)).find(Boolean);
  const port = numberOf(data, "port");
  return {
    vni: numberOf(data, "id") ?? 0,
    ...(local === undefined ? {} : { local }),
    ...(port === undefined ? {} : { port }),
    learning: flagOf(data, "learning"),
    gbp: flagOf(data, "gbp"),
    ...(group === undefined ? {} : { group }),
    l2miss: flagOf(data, "l2miss"),
    ...(underlay === undefined ? {} : { underlay }),
  };
}
