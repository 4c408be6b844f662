import type { HostFacts } from "flannel/sdk";
import type { Counter } from "./datapath/counters.ts";
import type { Options } from "./options.ts";
import type { Family } from "./packet/address.ts";
import { openLibc } from "./system/libc.ts";
import { openRawSocket, openUdpSocket, type UdpSocket } from "./system/sockets.ts";
import { openTun, type Tun } from "./system/tun.ts";

/** Everything packets go in and out of. */
export interface Endpoints {
  readonly tun: Tun;
  readonly ipv4?: UdpSocket;
  readonly ipv6?: UdpSocket;
  /** -1 for none. */
  readonly raw4: number;
  readonly raw6: number;
  close(): void;
}

/**
 * Opens the TUN device and the sockets of the enabled families, on the interface's own addresses. Throws a Fault
 * `UDP_TUN_…`, `UDP_PORT_IN_USE`, `UDP_SOCKET_REFUSED`; nothing is open then.
 */
export function openEndpoints(
  options: Options,
  families: readonly Family[],
  { external }: HostFacts,
): Endpoints {
  const opened: number[] = [];
  const close = () => {
    for (const fd of opened.splice(0)) openLibc().close(fd);
  };
  const keep = <T extends { readonly fd: number }>(file: T): T => {
    if (file.fd >= 0) opened.push(file.fd);
    return file;
  };
  try {
    const offload = options.Offload === "auto";
    const open = (family: Family, port: number, any: string) =>
      keep(openUdpSocket(family, external[family] ?? any, port, offload));
    const has = (family: Family) => families.includes(family);
    return {
      ...(has("ipv4") ? { ipv4: open("ipv4", options.Port, "0.0.0.0") } : {}),
      ...(has("ipv6") ? { ipv6: open("ipv6", options.PortV6, "::") } : {}),
      raw4: has("ipv4") ? keep({ fd: openRawSocket("ipv4") }).fd : -1,
      raw6: has("ipv6") ? keep({ fd: openRawSocket("ipv6") }).fd : -1,
      tun: keep(openTun(offload)),
      close,
    };
  } catch (error) {
    close();
    throw error;
  }
}

/** For the status: by which means packets are moved, and the counters that are not zero. */
export function describeThroughput(
  { tun, ipv4, ipv6 }: Endpoints,
  counts: Readonly<Record<Counter, number>> | undefined,
): Readonly<Record<string, string>> {
  const socket = ipv4 ?? ipv6;
  const means = [
    tun.tcpOffload ? "TSO" : "",
    tun.udpOffload ? "USO" : "",
    socket?.segments ? "UDP GSO" : "",
    socket?.coalesces ? "UDP GRO" : "",
  ].filter(Boolean);
  const dropped = (
    [
      "strangers",
      "malformed",
      "noRoute",
      "expired",
      "tooBig",
      "sendErrors",
      "receiveErrors",
      "writeErrors",
    ] as const
  )
    .filter((counter) => (counts?.[counter] ?? 0) > 0)
    .map((counter) => `${counts?.[counter]} ${counter}`);
  return {
    path: means.length === 0 ? "slow: packet by packet" : `fast: ${means.join(", ")}`,
    ...(counts
      ? {
          sent: `${counts.sentPackets} packets, ${counts.sentBytes} bytes`,
          received: `${counts.receivedPackets} packets, ${counts.receivedBytes} bytes`,
          dropped: dropped.length === 0 ? "none" : dropped.join(", "),
        }
      : {}),
  };
}
