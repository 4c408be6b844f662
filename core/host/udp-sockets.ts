import { readFileSync } from "node:fs";

/** A bound UDP socket. */
export interface UdpSocket {
  readonly port: number;
  /** Of the kernel itself: a vxlan device, which shares its port with others of its kind. */
  readonly kernel: boolean;
}

/** The bound UDP sockets of this network namespace, of both families (/proc/net/udp and udp6). */
export function listUdpSockets(): readonly UdpSocket[] {
  return ["/proc/net/udp", "/proc/net/udp6"].flatMap((file) => {
    try {
      return parseUdpSockets(readFileSync(file, "utf8"));
    } catch {
      return [];
    }
  });
}

/** Reads /proc/net/udp: columns are slot, local address:port (hexadecimal), …, inode as the tenth. */
export function parseUdpSockets(text: string): readonly UdpSocket[] {
  return text
    .split("\n")
    .slice(1)
    .flatMap((line) => {
      const columns = line.trim().split(/\s+/);
      const port = Number.parseInt(columns[1]?.split(":")[1] ?? "", 16);
      return port > 0 ? [{ port, kernel: columns[9] === "0" }] : [];
    });
}
