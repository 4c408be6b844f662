import type { HostFacts, Peer, PeerFamily } from "flannel/sdk";
import type { PeersMessage } from "./datapath/messages.ts";
import type { Options } from "./options.ts";
import { FAMILIES, type Family, parsePrefix } from "./packet/address.ts";
import { SOCKET_ADDRESS_ROOM, socketAddress } from "./system/socket-address.ts";

/** `BackendType` in our leases: upstream leaves it empty, and looks at none. */
export const TYPE = "";
/** What others may write there. */
const ACCEPTED: readonly string[] = [TYPE, "udp"];
/** Longest quote of a lease's data in a message. */
const LONGEST_QUOTE = 100;

/** What became of the peers. */
export interface PlannedPeers {
  /** For the data path. */
  readonly table: Omit<PeersMessage, "kind">;
  /** Peers that can be reached in no way, or not in all families. */
  readonly unusable: readonly { readonly key: string; readonly reason: string }[];
}

/** What the lease of a node that runs this backend says, per family. */
export interface UdpData {
  readonly Port: number;
  /** Where its datagrams come from, when that is not the published address: a NAT may or may not lie in between. */
  readonly Address?: string;
}

/** The data to publish for a family. */
export function publishedData(options: Options, family: Family, { external }: HostFacts): UdpData {
  const own = external[family];
  const published = family === "ipv4" ? external.publicIP : external.publicIPv6;
  const differs = own !== undefined && own !== published;
  return { Port: portOf(options, family), ...(differs ? { Address: own } : {}) };
}

function portOf(options: Options, family: Family): number {
  return family === "ipv4" ? options.Port : options.PortV6;
}

/** Makes a table of peers. The families of a peer do not depend on each other: one bad half leaves the other. Pure. */
export function planPeers(peers: readonly Peer[], options: Options): PlannedPeers {
  const routes: number[] = [];
  const endpoints: Uint8Array[] = [];
  const unusable: { key: string; reason: string }[] = [];
  for (const peer of peers) {
    const reasons: string[] = [];
    if (!ACCEPTED.includes(peer.backendType)) {
      unusable.push({ key: peer.key, reason: `uses backend "${peer.backendType}", this node uses "udp"` });
      continue;
    }
    for (const family of FAMILIES) {
      const half = peer[family];
      if (half === undefined) continue;
      const port = readPort(half, portOf(options, family));
      if (port === undefined) reasons.push(`has no usable Port for ${family}: ${quote(half.data)}`);
      else if (!add(routes, endpoints, half, port)) {
        reasons.push(`has no usable address for ${family}: ${half.subnet} at ${half.publicIP}`);
      }
    }
    if (reasons.length > 0) unusable.push({ key: peer.key, reason: reasons.join("; ") });
  }
  const packed = new Uint8Array(endpoints.length * SOCKET_ADDRESS_ROOM);
  endpoints.forEach((endpoint, n) => {
    packed.set(endpoint, n * SOCKET_ADDRESS_ROOM);
  });
  return { table: { routes: Int32Array.from(routes), endpoints: packed }, unusable };
}

function add(routes: number[], endpoints: Uint8Array[], half: PeerFamily, port: number): boolean {
  const subnet = parsePrefix(half.subnet);
  const endpoint = socketAddress(half.publicIP, port);
  if (!subnet || !endpoint) return false;
  const [a = 0, b = 0, c = 0, d = 0] = subnet.words;
  const length = subnet.length + (subnet.family === "ipv6" ? 256 : 0);
  routes.push(length, a, b, c, d, endpoints.length, 0);
  endpoints.push(endpoint);
  // An endpoint that no route leads to: datagrams may come from there.
  const { Address: own } = (half.data ?? {}) as { Address?: unknown };
  const other = typeof own === "string" ? socketAddress(own, port) : undefined;
  if (other?.length === endpoint.length) endpoints.push(other);
  return true;
}

/** The peer's port: what its lease says, ours when it says nothing (upstream's never does), undefined for nonsense. */
function readPort({ data }: PeerFamily, ours: number): number | undefined {
  if (data === undefined || data === null) return ours;
  if (typeof data !== "object" || Array.isArray(data)) return undefined;
  const { Port: port } = data as { Port?: unknown };
  if (port === undefined || port === null) return ours;
  return typeof port === "number" && Number.isInteger(port) && port >= 1 && port <= 65_535 ? port : undefined;
}

/** A lease's data, cut to what fits a log line. */
function quote(data: unknown): string {
  const text = JSON.stringify(data ?? null);
  return text.length > LONGEST_QUOTE ? `${text.slice(0, LONGEST_QUOTE)}…` : text;
}
