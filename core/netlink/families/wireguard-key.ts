import { badObjectFault } from "../faults.ts";

/** WG_KEY_LEN (linux/wireguard.h). */
export const KEY_BYTES = 32;

/** The bytes of a key of base64 text. Throws Fault `NETLINK_BAD_OBJECT`, which does not show the text. */
export function decodeKey(text: string): Uint8Array {
  const bytes = Buffer.from(text, "base64");
  if (bytes.length !== KEY_BYTES || bytes.toString("base64") !== text) {
    throw badObjectFault("a WireGuard key (32 bytes as base64)", `${text.length} characters`);
  }
  return bytes;
}

/** Base64 text of a key; undefined for one that is all zeros, which stands for none. */
export function encodeKey(bytes: Uint8Array): string | undefined {
  if (bytes.every((byte) => byte === 0)) return undefined;
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}
