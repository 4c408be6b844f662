import { parseAddress } from "../packet/address.ts";

/** Room for either family's socket address. */
export const SOCKET_ADDRESS_ROOM = 32;
/** sizeof(struct sockaddr_in), sizeof(struct sockaddr_in6). */
export const SOCKET_ADDRESS_LENGTH = { ipv4: 16, ipv6: 28 } as const;

/** AF_INET and AF_INET6 (linux/socket.h). */
export const ADDRESS_FAMILY = { ipv4: 2, ipv6: 10 } as const;

/** `struct sockaddr_in` or `sockaddr_in6` for an address in text form; undefined when it is no address. */
export function socketAddress(address: string, port: number): Uint8Array | undefined {
  const parsed = parseAddress(address);
  if (!parsed) return undefined;
  const bytes = new Uint8Array(SOCKET_ADDRESS_LENGTH[parsed.family]);
  const view = new DataView(bytes.buffer);
  view.setUint16(0, ADDRESS_FAMILY[parsed.family], true);
  view.setUint16(2, port);
  const at = parsed.family === "ipv4" ? 4 : 8;
  parsed.words.forEach((word, n) => {
    view.setInt32(at + 4 * n, word);
  });
  return bytes;
}
