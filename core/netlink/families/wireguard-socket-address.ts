import { formatIPv4, parseIPv4 } from "../../net/ipv4.ts";
import { formatIPv6, parseIPv6 } from "../../net/ipv6.ts";
import { badObjectFault } from "../faults.ts";
import { AF_INET, AF_INET6 } from "../wire/constants.ts";
import type { WireguardEndpoint } from "../wireguard-objects.ts";

/** struct sockaddr_in and sockaddr_in6 (linux/in.h, linux/in6.h). */
const IPV4_BYTES = 16;
const IPV6_BYTES = 28;
const LOW_64 = 0xffffffffffffffffn;

/** The bytes of a struct sockaddr_in or sockaddr_in6. Throws Fault `NETLINK_BAD_OBJECT`. */
export function encodeSocketAddress({ address, port }: WireguardEndpoint): Uint8Array {
  if (!(Number.isInteger(port) && port > 0 && port <= 0xffff)) throw badObjectFault("a port", String(port));
  const ipv4 = parseIPv4(address);
  const bytes = new Uint8Array(ipv4 === undefined ? IPV6_BYTES : IPV4_BYTES);
  const view = new DataView(bytes.buffer);
  view.setUint16(0, ipv4 === undefined ? AF_INET6 : AF_INET, true);
  view.setUint16(2, port, false);
  if (ipv4 !== undefined) {
    view.setUint32(4, ipv4, false);
    return bytes;
  }
  const ipv6 = parseIPv6(address);
  if (ipv6 === undefined) throw badObjectFault("an address", address);
  // Behind the flow label.
  view.setBigUint64(8, ipv6 >> 64n, false);
  view.setBigUint64(16, ipv6 & LOW_64, false);
  return bytes;
}

/** The address and port of such a structure, undefined when there are none in it. */
export function decodeSocketAddress(bytes: Uint8Array): WireguardEndpoint | undefined {
  if (bytes.byteLength < IPV4_BYTES) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const family = view.getUint16(0, true);
  const port = view.getUint16(2, false);
  if (family === AF_INET) return { address: formatIPv4(view.getUint32(4, false)), port };
  if (family !== AF_INET6 || bytes.byteLength < IPV6_BYTES) return undefined;
  return {
    address: formatIPv6((view.getBigUint64(8, false) << 64n) | view.getBigUint64(16, false)),
    port,
  };
}
