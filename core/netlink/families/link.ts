import { badObjectFault } from "../faults.ts";
import type { IpipAttrs, LinkState, WantedLink } from "../objects.ts";
import type { MessageBuilder } from "../wire/builder.ts";
import {
  AF_UNSPEC,
  IFF_LOOPBACK,
  IFF_RUNNING,
  IFF_UP,
  IFINFO_BYTES,
  IFLA_ADDRESS,
  IFLA_EXT_MASK,
  IFLA_IFNAME,
  IFLA_INFO_DATA,
  IFLA_INFO_KIND,
  IFLA_LINK,
  IFLA_LINK_NETNSID,
  IFLA_LINKINFO,
  IFLA_MASTER,
  IFLA_MTU,
  IFLA_TXQLEN,
  LONGEST_NAME,
  NLM_F_CREATE,
  NLM_F_DUMP,
  NLM_F_EXCL,
  RTEXT_FILTER_SKIP_STATS,
  RTM_DELLINK,
  RTM_GETLINK,
  RTM_NEWLINK,
} from "../wire/constants.ts";
import type { AttributeCursor, MessageCursor } from "../wire/reader.ts";
import { decodeIpip, encodeIpip } from "./ipip.ts";
import { decodeVxlan, encodeVxlan, type RawVxlan } from "./vxlan.ts";

/** A device whose underlay is still an index: the name needs a second look-up. */
export interface RawLink {
  readonly state: Omit<LinkState, "vxlan">;
  readonly vxlan?: RawVxlan;
}

/** Whether the kernel could have a device of this name (1 to 15 bytes, no slash, colon or space; dev_valid_name()). */
export function isDeviceName(name: string): boolean {
  if (name === "" || name === "." || name === ".." || Buffer.byteLength(name) > LONGEST_NAME) return false;
  return !/[\s/:\0]/.test(name);
}

/** `ip -d link show` */
export function encodeLinkDump(builder: MessageBuilder, sequence: number): void {
  begin(builder, RTM_GETLINK, NLM_F_DUMP, sequence, 0);
  builder.attributeU32(IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS);
  builder.end();
}

/** `ip -d link show dev NAME`, by name or by index. */
export function encodeLinkQuery(builder: MessageBuilder, sequence: number, which: string | number): void {
  begin(builder, RTM_GETLINK, 0, sequence, typeof which === "number" ? which : 0);
  if (typeof which === "string") builder.attributeText(IFLA_IFNAME, which);
  builder.attributeU32(IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS);
  builder.end();
}

/**
 * `ip link add NAME mtu MTU [address MAC] txqueuelen 0 type TYPE …`: MAC and MTU travel in the creating request, so
 * that there is no moment with other ones. Throws Fault `NETLINK_BAD_OBJECT`.
 */
export function encodeLinkCreate(
  builder: MessageBuilder,
  sequence: number,
  link: WantedLink,
  underlay: number | undefined,
): void {
  if (!isDeviceName(link.name)) throw badObjectFault("a device name", link.name);
  begin(builder, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, sequence, 0);
  builder.attributeText(IFLA_IFNAME, link.name);
  if (link.mtu > 0) builder.attributeU32(IFLA_MTU, link.mtu);
  builder.attributeU32(IFLA_TXQLEN, 0);
  if (link.type === "vxlan") builder.attributeMac(IFLA_ADDRESS, link.mac);
  const info = builder.openNest(IFLA_LINKINFO);
  builder.attributeText(IFLA_INFO_KIND, link.type);
  if (link.type !== "wireguard") {
    const data = builder.openNest(IFLA_INFO_DATA);
    if (link.type === "vxlan") encodeVxlan(builder, link.vxlan, underlay);
    else encodeIpip(builder, link.ipip);
    builder.closeNest(data);
  }
  builder.closeNest(info);
  builder.end();
}

/** `ip link set NAME [mtu MTU] [address MAC] [up|down]`. Throws Fault `NETLINK_BAD_OBJECT`. */
export function encodeLinkChange(
  builder: MessageBuilder,
  sequence: number,
  index: number,
  change: { mtu?: number; mac?: string; up?: boolean },
): void {
  begin(builder, RTM_NEWLINK, 0, sequence, index, change.up);
  if (change.mtu !== undefined) builder.attributeU32(IFLA_MTU, change.mtu);
  if (change.mac !== undefined) builder.attributeMac(IFLA_ADDRESS, change.mac);
  builder.end();
}

/** `ip link delete NAME` */
export function encodeLinkDelete(builder: MessageBuilder, sequence: number, index: number): void {
  begin(builder, RTM_DELLINK, 0, sequence, index);
  builder.end();
}

/** Starts a message with a struct ifinfomsg. */
function begin(
  builder: MessageBuilder,
  type: number,
  flags: number,
  sequence: number,
  index: number,
  up?: boolean,
): void {
  builder.begin(type, flags, sequence);
  builder.u32(AF_UNSPEC);
  builder.u32(index);
  builder.u32(up === true ? IFF_UP : 0);
  builder.u32(up === undefined ? 0 : IFF_UP);
}

/**
 * RTM_NEWLINK or RTM_DELLINK. Undefined for a message of another family: those of AF_BRIDGE tell of a bridge port,
 * and their RTM_DELLINK does not mean that the device is gone.
 */
export function decodeLink(message: MessageCursor): RawLink | undefined {
  message.require(IFINFO_BYTES);
  const { view, start } = message;
  if (view.getUint8(start) !== AF_UNSPEC) return undefined;
  const flags = view.getUint32(start + 8, true);
  let name = "";
  let mtu = 0;
  let mac: string | undefined;
  let lower: number | undefined;
  let master: number | undefined;
  let foreignLower = false;
  let info: LinkInfo = {};
  const attributes = message.attributes(IFINFO_BYTES);
  while (attributes.next()) {
    if (attributes.type === IFLA_IFNAME) name = attributes.text();
    else if (attributes.type === IFLA_MTU) mtu = attributes.u32();
    else if (attributes.type === IFLA_ADDRESS) mac = attributes.mac();
    else if (attributes.type === IFLA_LINK) lower = attributes.u32();
    else if (attributes.type === IFLA_LINK_NETNSID) foreignLower = true;
    else if (attributes.type === IFLA_MASTER) master = attributes.u32();
    else if (attributes.type === IFLA_LINKINFO) info = decodeLinkInfo(attributes.nested());
  }
  const { kind, vxlan, ipip } = info;
  const state = {
    name,
    index: view.getInt32(start + 4, true),
    ...(kind === undefined ? {} : { type: kind }),
    mtu,
    ...(mac === undefined ? {} : { mac }),
    up: (flags & IFF_UP) !== 0,
    running: (flags & IFF_RUNNING) !== 0,
    loopback: (flags & IFF_LOOPBACK) !== 0,
    // An index of another namespace (a veth's far end) would name a stranger here.
    ...(lower === undefined || lower === 0 || foreignLower ? {} : { lower }),
    ...(master === undefined || master === 0 ? {} : { master }),
    ...(ipip === undefined ? {} : { ipip }),
  };
  return vxlan === undefined ? { state } : { state, vxlan };
}

interface LinkInfo {
  readonly kind?: string;
  readonly vxlan?: RawVxlan;
  readonly ipip?: IpipAttrs;
}

function decodeLinkInfo(attributes: AttributeCursor): LinkInfo {
  let kind: string | undefined;
  let data: AttributeCursor | undefined;
  while (attributes.next()) {
    if (attributes.type === IFLA_INFO_KIND) kind = attributes.text();
    else if (attributes.type === IFLA_INFO_DATA) data = attributes.nested();
  }
  if (kind === undefined) return {};
  if (kind === "vxlan" && data) return { kind, vxlan: decodeVxlan(data) };
  if (kind === "ipip" && data) return { kind, ipip: decodeIpip(data) };
  return { kind };
}
