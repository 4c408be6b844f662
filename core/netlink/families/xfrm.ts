import { parseIPv4 } from "../../net/ipv4.ts";
import { parseIPv6 } from "../../net/ipv6.ts";
import { badObjectFault } from "../faults.ts";
import { familyOf, type MessageBuilder, prefixLengthOf, slashOf } from "../wire/builder.ts";
import { AF_INET, AF_INET6, NLM_F_DUMP } from "../wire/constants.ts";
import type { XfrmChange, XfrmDirection, XfrmPolicy, XfrmState } from "../xfrm-objects.ts";
import {
  ADDRESS_BYTES,
  ANY_ALGORITHM,
  IPPROTO_ESP,
  LIFETIME_CONFIG_BYTES,
  LIFETIME_CURRENT_BYTES,
  LIFETIME_LIMITS,
  TEMPLATE_BYTES,
  XFRM_MODE_TUNNEL,
  XFRM_MSG_DELPOLICY,
  XFRM_MSG_DELSA,
  XFRM_MSG_GETPOLICY,
  XFRM_MSG_GETSA,
  XFRM_MSG_UPDPOLICY,
  XFRM_POLICY_ALLOW,
  XFRM_POLICY_FWD,
  XFRM_POLICY_IN,
  XFRM_POLICY_OUT,
  XFRMA_SRCADDR,
  XFRMA_TMPL,
} from "./xfrm-constants.ts";

/** `dir` of struct xfrm_userpolicy_info. */
export const DIRECTIONS: Readonly<Record<XfrmDirection, number>> = {
  in: XFRM_POLICY_IN,
  out: XFRM_POLICY_OUT,
  fwd: XFRM_POLICY_FWD,
};

/** `ip xfrm policy list` */
export function encodePolicyDump(builder: MessageBuilder, sequence: number): void {
  builder.begin(XFRM_MSG_GETPOLICY, NLM_F_DUMP, sequence);
  builder.end();
}

/** `ip xfrm state list` */
export function encodeStateDump(builder: MessageBuilder, sequence: number): void {
  builder.begin(XFRM_MSG_GETSA, NLM_F_DUMP, sequence);
  builder.end();
}

/**
 * Writes one change as a message. Throws Fault `NETLINK_BAD_OBJECT` for one that cannot be written down, leaving the
 * message unfinished: clear the builder then.
 */
export function encodeXfrmChange(builder: MessageBuilder, sequence: number, change: XfrmChange): void {
  if ("state" in change) encodeStateDelete(builder, sequence, change.state);
  else if (change.action === "put") encodePolicy(builder, sequence, change.policy);
  else encodePolicyDelete(builder, sequence, change.policy);
}

/** `ip xfrm policy update src … dst … dir … tmpl src … dst … proto esp reqid … mode tunnel` */
function encodePolicy(builder: MessageBuilder, sequence: number, policy: XfrmPolicy): void {
  builder.begin(XFRM_MSG_UPDPOLICY, 0, sequence);
  writeSelector(builder, policy);
  for (let limit = 0; limit < LIFETIME_CONFIG_BYTES / 8; limit++) {
    // Without limits in bytes and packets; no time to live.
    const value = limit < LIFETIME_LIMITS ? 0xffffffff : 0;
    builder.u32(value);
    builder.u32(value);
  }
  for (let word = 0; word < LIFETIME_CURRENT_BYTES / 4; word++) builder.u32(0);
  builder.u32(0);
  builder.u32(0);
  builder.u8(DIRECTIONS[policy.direction]);
  builder.u8(XFRM_POLICY_ALLOW);
  builder.u16(0);
  builder.u32(0);
  builder.attributeBytes(XFRMA_TMPL, templateOf(policy));
  builder.end();
}

/** `ip xfrm policy delete src … dst … dir …` */
function encodePolicyDelete(
  builder: MessageBuilder,
  sequence: number,
  policy: Pick<XfrmPolicy, "src" | "dst" | "direction">,
): void {
  builder.begin(XFRM_MSG_DELPOLICY, 0, sequence);
  writeSelector(builder, policy);
  builder.u32(0);
  builder.u8(DIRECTIONS[policy.direction]);
  builder.u8(0);
  builder.u16(0);
  builder.end();
}

/** `ip xfrm state delete src … dst … proto … spi …` */
function encodeStateDelete(
  builder: MessageBuilder,
  sequence: number,
  { src, dst, spi, protocol }: Pick<XfrmState, "src" | "dst" | "spi" | "protocol">,
): void {
  builder.begin(XFRM_MSG_DELSA, 0, sequence);
  writeAddress(builder, dst);
  writeBigEndian(builder, spi);
  builder.u16(numberOf(dst));
  builder.u8(protocol);
  builder.u8(0);
  builder.attributeBytes(XFRMA_SRCADDR, addressBytes(src));
  builder.end();
}

/** struct xfrm_selector: the prefixes, any port and protocol. */
function writeSelector(
  builder: MessageBuilder,
  { src, dst }: { readonly src: string; readonly dst: string },
): void {
  const [from, to] = [splitCidr(src), splitCidr(dst)];
  writeAddress(builder, to.address);
  writeAddress(builder, from.address);
  builder.u32(0);
  builder.u32(0);
  builder.u16(numberOf(dst));
  builder.u8(to.length);
  builder.u8(from.length);
  for (let word = 0; word < 3; word++) builder.u32(0);
}

/** struct xfrm_user_tmpl of an ESP tunnel. */
function templateOf({ tunnel }: XfrmPolicy): Uint8Array {
  const bytes = new Uint8Array(TEMPLATE_BYTES);
  const view = new DataView(bytes.buffer);
  bytes.set(addressBytes(tunnel.dst), 0);
  view.setUint8(20, IPPROTO_ESP);
  view.setUint16(24, numberOf(tunnel.dst), true);
  bytes.set(addressBytes(tunnel.src), 28);
  view.setUint32(44, tunnel.reqid, true);
  view.setUint8(48, XFRM_MODE_TUNNEL);
  for (const at of [52, 56, 60]) view.setUint32(at, ANY_ALGORITHM, true);
  return bytes;
}

function splitCidr(cidr: string): { readonly address: string; readonly length: number } {
  const slash = slashOf(cidr);
  return { address: cidr.slice(0, slash), length: prefixLengthOf(cidr, slash, familyOf(cidr)) };
}

function numberOf(address: string): number {
  return familyOf(address) === 4 ? AF_INET : AF_INET6;
}

function writeAddress(builder: MessageBuilder, address: string): void {
  for (const byte of addressBytes(address)) builder.u8(byte);
}

function writeBigEndian(builder: MessageBuilder, value: number): void {
  for (const shift of [24, 16, 8, 0]) builder.u8((value >>> shift) & 0xff);
}

/** struct xfrm_address. Throws Fault `NETLINK_BAD_OBJECT`. */
function addressBytes(text: string): Uint8Array {
  const bytes = new Uint8Array(ADDRESS_BYTES);
  const view = new DataView(bytes.buffer);
  const ipv4 = parseIPv4(text);
  if (ipv4 !== undefined) {
    view.setUint32(0, ipv4, false);
    return bytes;
  }
  const ipv6 = parseIPv6(text);
  if (ipv6 === undefined) throw badObjectFault("an address", text);
  view.setBigUint64(0, ipv6 >> 64n, false);
  view.setBigUint64(8, ipv6 & 0xffffffffffffffffn, false);
  return bytes;
}
