import { createHash } from "node:crypto";

/**
 * The MAC of a device that has to be created: derived from the node's identity, so it is the same after a reboot
 * and peers' entries stay right. Locally administered, unicast (IEEE 802 §8.2: bit 1 set, bit 0 clear).
 */
export function deriveMac(nodeId: string, device: string): string {
  const bytes = createHash("sha256").update(`${nodeId} ${device}`).digest().subarray(0, 6);
  bytes[0] = ((bytes[0] ?? 0) & 0xfe) | 0x02;
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join(":");
}

const MAC = /^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/;

/** A peer's `VtepMAC` in lower case; undefined when it is not a usable unicast MAC. */
export function readMac(value: unknown): string | undefined {
  if (typeof value !== "string") return undefined;
  const mac = value.toLowerCase().replaceAll("-", ":");
  if (!MAC.test(mac) || mac === "00:00:00:00:00:00") return undefined;
  return Number.parseInt(mac.slice(0, 2), 16) & 1 ? undefined : mac;
}
