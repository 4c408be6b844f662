import { EtcdServer, type EtcdServerOptions } from "./etcd.ts";
import type { Host } from "./host.ts";
import { hasV4, hasV6 } from "./segment.ts";
import type { Switch } from "./switch.ts";

const PORT = 2379;

/**
 * Starts etcd in a switch's namespace, on the switch's own addresses of every family it has: the hosts reach it
 * over their underlay, and cutting a host off cuts it off from etcd too.
 */
export function startEtcdOn(on: Switch, options: EtcdServerOptions = {}): Promise<EtcdServer> {
  const urls = endpointUrls(on, options.tls === undefined ? "http" : "https").join(",");
  return EtcdServer.start({
    ...options,
    namespace: on.namespace.name,
    address: hasV4(on.family) ? on.ipv4 : on.ipv6,
    port: PORT,
    args: ["--listen-client-urls", urls, "--advertise-client-urls", urls, ...(options.args ?? [])],
  });
}

/** The endpoint of {@link startEtcdOn}'s server that a host can reach: over IPv4 when both have it. */
export function endpointFor(host: Host, on: Switch = host.switch, scheme = "http"): string {
  return hasV4(host.family) && hasV4(on.family)
    ? `${scheme}://${on.ipv4}:${PORT}`
    : `${scheme}://[${on.ipv6}]:${PORT}`;
}

function endpointUrls(on: Switch, scheme: string): string[] {
  return [
    ...(hasV4(on.family) ? [`${scheme}://${on.ipv4}:${PORT}`] : []),
    ...(hasV6(on.family) ? [`${scheme}://[${on.ipv6}]:${PORT}`] : []),
  ];
}
