import type { HostFacts, Peer, PeerFamily, WireguardEndpoint } from "flannel/sdk";
import { isPrivate, liesIn } from "./address.ts";
import type { Device, Family } from "./devices.ts";
import { isPublicKey } from "./key.ts";
import type { Options } from "./options.ts";

/** Value of `BackendType` in the leases of this backend. */
export const TYPE = "wireguard";

/** What a node publishes per family, as upstream does. */
export interface PeerData {
  readonly PublicKey: string;
  readonly Port: number;
}

/** A peer as one of our devices should have it. */
export interface WantedPeer {
  readonly publicKey: string;
  readonly presharedKey?: string;
  readonly endpoint: WireguardEndpoint;
  readonly keepalive: number;
  readonly allowedIPs: readonly string[];
}

/** What is needed to plan the peers. */
export interface PeerContext {
  readonly options: Options;
  readonly devices: readonly Device[];
  /** Cluster networks as CIDR text. */
  readonly networks: readonly string[];
  readonly ownPublicKey: string;
  readonly facts: HostFacts;
}

/** The peers of every device, and who cannot be reached and why. */
export interface PeersPlan {
  readonly wanted: ReadonlyMap<string, readonly WantedPeer[]>;
  readonly unusable: readonly { readonly key: string; readonly reason: string }[];
  /** Keys of peers with our own key: a cloned disk. */
  readonly clones: readonly string[];
}

/**
 * Pure: from leases to peers. One that is not usable, or half of one, keeps no other from it. Of two leases with one key
 * the newer counts, on every node: a node that moved (upstream gives it another subnet with another address) leaves its
 * old lease behind for a day.
 */
export function planPeers(peers: readonly Peer[], context: PeerContext): PeersPlan {
  const wanted = new Map<string, readonly WantedPeer[]>();
  const unusable: { key: string; reason: string }[] = [];
  const clones: string[] = [];
  const newestFirst = peers.toSorted(compareAge);
  for (const device of context.devices) {
    /** By public key: whose it is. */
    const owners = new Map<string, string>();
    const planned: WantedPeer[] = [];
    for (const peer of newestFirst) {
      const { key } = peer;
      const plan = planPeer(peer, device, context);
      if (plan === undefined) continue;
      if (typeof plan === "string") {
        unusable.push({ key, reason: plan });
        continue;
      }
      const owner = owners.get(plan.publicKey);
      if (plan.publicKey === context.ownPublicKey) {
        clones.push(key);
        unusable.push({ key, reason: "has the same key as this node: its disk was cloned" });
      } else if (owner !== undefined) {
        const reason = `has the same key as the newer lease ${owner}: its node moved there, or one disk was cloned`;
        unusable.push({ key, reason });
      } else {
        owners.set(plan.publicKey, key);
        planned.push(plan);
      }
    }
    wanted.set(device.name, planned);
  }
  return { wanted, unusable: mergeReasons(unusable), clones: [...new Set(clones)] };
}

/** The newer first; the key decides where the store has no revisions. */
function compareAge(a: Peer, b: Peer): number {
  return (b.modRevision ?? 0) - (a.modRevision ?? 0) || (a.key < b.key ? -1 : 1);
}

/** A peer on a device; why it cannot be, or undefined where it has nothing to do there. */
function planPeer(peer: Peer, device: Device, context: PeerContext): WantedPeer | string | undefined {
  const { options, networks, facts } = context;
  const halves = device.carries.flatMap((family): Half[] => {
    const half = peer[family];
    return half === undefined ? [] : [{ family, half }];
  });
  if (halves.length === 0) return undefined;
  if (peer.backendType !== TYPE) return `uses backend "${peer.backendType}", this node uses "${TYPE}"`;
  const over = options.Mode === "separate" ? halves[0] : chooseEndpoint(peer, options.Mode, facts);
  if (over === undefined) return `has no ${options.Mode === "ipv4" ? "IPv4" : "IPv6"} address`;
  const bad = halves.find(({ half }) => !isPublicKey(dataOf(half).PublicKey));
  if (bad) return `has no usable PublicKey for ${bad.family}: ${quote(bad.half.data)}`;
  const publicKey = dataOf(over.half).PublicKey;
  const other = halves.find(({ half }) => dataOf(half).PublicKey !== publicKey);
  if (!isPublicKey(publicKey) || other)
    return "has different keys for IPv4 and IPv6, which mode separate needs";
  const { publicIP } = over.half;
  if (liesIn(publicIP, networks)) return `its address ${publicIP} lies inside the cluster's own network`;
  return {
    publicKey,
    ...(options.PSK === "" ? {} : { presharedKey: options.PSK }),
    endpoint: { address: publicIP, port: portOf(peer, over, options, device) },
    keepalive: options.PersistentKeepaliveInterval,
    allowedIPs: halves.map(({ half }) => half.subnet),
  };
}

interface Half {
  readonly family: Family;
  readonly half: PeerFamily;
}

/**
 * Over which family a single device reaches a peer. `auto` takes the one most likely to work, as upstream does: IPv4
 * when the peer's is public and we have IPv4; IPv6 when neither side's is a local one (ULA); else IPv4.
 */
function chooseEndpoint(
  { ipv4, ipv6 }: Peer,
  mode: Options["Mode"],
  { external }: HostFacts,
): Half | undefined {
  const v4 = ipv4 && ({ family: "ipv4", half: ipv4 } as const);
  const v6 = ipv6 && ({ family: "ipv6", half: ipv6 } as const);
  if (mode === "ipv4") return v4;
  if (mode === "ipv6") return v6;
  if (!v4 || !v6) return v4 ?? v6;
  if (!isPrivate(v4.half.publicIP) && external.publicIP !== undefined) return v4;
  const own = external.publicIPv6;
  return own !== undefined && !isPrivate(v6.half.publicIP) && !isPrivate(own) ? v6 : v4;
}

/**
 * The peer's port out of its lease; ours, where it tells none (older peers). A single device listens on the port that
 * the IPv4 data has: upstream publishes that of the second device, which there is not, in the IPv6 data.
 */
function portOf({ ipv4 }: Peer, over: Half, { Mode }: Options, { port: ours }: Device): number {
  const { Port } = dataOf(Mode === "separate" ? over.half : (ipv4 ?? over.half));
  return typeof Port === "number" && Number.isInteger(Port) && Port > 0 && Port <= 65535 ? Port : ours;
}

function dataOf({ data }: PeerFamily): { readonly PublicKey?: unknown; readonly Port?: unknown } {
  return typeof data === "object" && data !== null ? data : {};
}

/** Backend data as the lease has it, cut to what fits a log line. */
function quote(data: unknown): string {
  const text = JSON.stringify(data ?? null);
  return text.length > LONGEST_QUOTE ? `${text.slice(0, LONGEST_QUOTE)}…` : text;
}

const LONGEST_QUOTE = 100;

/** One entry per peer, with what is wrong on each device. */
function mergeReasons(all: PeersPlan["unusable"]): PeersPlan["unusable"] {
  const reasons = new Map<string, Set<string>>();
  for (const { key, reason } of all) reasons.set(key, (reasons.get(key) ?? new Set()).add(reason));
  return [...reasons].map(([key, texts]) => ({ key, reason: [...texts].join("; ") }));
}
