import { readFileSync } from "node:fs";

/** Ports of the bound UDP sockets of this network namespace, of both families, the kernel's own (vxlan) too. */
export function listUdpPorts(): readonly number[] {
  return ["/proc/net/udp", "/proc/net/udp6"].flatMap((file) => {
    try {
      return parseUdpPorts(readFileSync(file, "utf8"));
    } catch {
      return [];
    }
  });
}

/** Reads /proc/net/udp and udp6: the second column is the local address:port, hexadecimal. */
export function parseUdpPorts(text: string): readonly number[] {
  return text
    .split("\n")
    .slice(1)
    .flatMap((line) => {
      const [, local = ""] = line.trim().split(/\s+/);
      const port = Number.parseInt(local.split(":")[1] ?? "", 16);
      return port > 0 ? [port] : [];
    });
}
