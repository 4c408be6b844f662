import type { PeerState } from "../dataplane/peer-state.ts";
import type { Lease } from "../lease/lease.ts";
import type { RejectedPeer } from "../lease/peer-entry.ts";
import { containsAddress, parsePrefix } from "../net/prefix.ts";
import { networksOf } from "./backend.ts";
import type { JournalEntry } from "./journal.ts";
import type { Observation } from "./observation.ts";
import type { LastProbe } from "./probes.ts";

/** What an address belongs to. `unassigned`: the cluster network has it, but no lease; `starting`: not known yet. */
export type AddressScope = "own" | "peer" | "rejected" | "unassigned" | "outside" | "starting";

/** What `flanneld explain IP -o json` prints. */
export interface Explanation {
  readonly address: string;
  readonly scope: AddressScope;
  /** One sentence for people. */
  readonly text: string;
  /** Whether packets to the address can be expected to arrive, as far as this node is concerned. */
  readonly ok: boolean;
  readonly lease?: { readonly key: string; readonly revision?: number };
  readonly node?: { readonly id?: string; readonly publicIP?: string; readonly publicIPv6?: string };
  readonly backend?: { readonly type: string; readonly data?: unknown };
  /** Where the kernel sends packets to the address; absent when it has no route. */
  readonly route?: {
    readonly dev: string;
    readonly via?: string;
    readonly src?: string;
    readonly mtu?: number;
    readonly up?: boolean;
  };
  /** The last `flanneld probe` of the peer in this family; absent when there was none since the daemon started. */
  readonly probe?: LastProbe;
  readonly objects: PeerState["objects"];
  readonly problems: readonly string[];
  readonly journal: readonly JournalEntry[];
}

type Found = Pick<Explanation, "scope" | "text"> & { readonly lease?: Lease };

/** Tells the whole chain for an address (canonical text): whose it is, how it is reached, and what led to that. */
export async function explainAddress(observation: Observation, address: string): Promise<Explanation> {
  const found = find(observation, address);
  const { scope, text, lease } = found;
  const route = await lookUp(observation, address);
  const state = describeState(observation, found);
  const problems = [...state.problems, ...judgeRoute(observation, found, state, route)];
  const probe = lease && observation.probes.of(lease.key, address.includes(":") ? 6 : 4);
  const refused = state.objects.some((object) => object.error !== undefined);
  return {
    address,
    scope,
    text,
    ok: (scope === "own" || scope === "peer") && problems.length === 0 && !refused,
    ...(lease ? describeLease(lease, address) : {}),
    ...(route ? { route } : {}),
    ...(probe ? { probe } : {}),
    objects: state.objects,
    problems,
    journal: lease ? observation.journal.list(lease.key) : [],
  };
}

function describeState({ session }: Observation, { scope, lease }: Found): PeerState {
  const nothing = { objects: [], problems: [] };
  return scope === "peer" && lease && session ? session.prepared.driver.describe(lease.key) : nothing;
}

/** What is wrong with the way the kernel takes to an address that a node has. */
function judgeRoute(
  { session }: Observation,
  { scope }: Found,
  { objects }: PeerState,
  route: Explanation["route"],
): readonly string[] {
  if (scope !== "own" && scope !== "peer") return [];
  if (!route) return ["the kernel has no route to it"];
  if (route.up === false) return [`the device ${route.dev} is down`];
  if (scope === "own") {
    return route.dev === session?.prepared.external.name
      ? [
          "no device of this host has the subnet: no container runs here, or its run time uses other addresses",
        ]
      : [];
  }
  const devices = new Set(objects.flatMap(({ dev }) => dev ?? []));
  if (devices.size === 0 || devices.has(route.dev)) return [];
  return [
    `the kernel takes ${route.dev} instead of ${[...devices].join(", ")}: somebody else's route or rule wins`,
  ];
}

function find({ session }: Observation, address: string): Found {
  if (!session) return { scope: "starting", text: "flanneld is still starting and knows no leases" };
  const { held, peers, prepared } = session;
  const has = (lease: Lease) => subnetsOf(lease).some((subnet) => contains(subnet, address));
  if (has(held.lease)) {
    return { scope: "own", text: "it lies in the subnet of this node", lease: session.ownLease };
  }
  const peer = peers.list().find(has);
  if (peer) return { scope: "peer", text: "it lies in the subnet of another node", lease: peer };
  const rejected = peers.rejected().find((each) => has(each.lease));
  if (rejected) return { scope: "rejected", text: describeRejected(rejected), lease: rejected.lease };
  const { ipv4, ipv6 } = networksOf(prepared.config);
  if ([ipv4, ipv6].some((network) => network !== undefined && contains(network, address))) {
    return { scope: "unassigned", text: "it lies in the cluster network, but no node has its subnet" };
  }
  return { scope: "outside", text: "it does not lie in the cluster network" };
}

function describeRejected({ reason, by }: RejectedPeer): string {
  return `it lies in a lease that is not routed to (${reason}): it clashes with ${by.key}`;
}

function subnetsOf({ subnets }: Lease): readonly string[] {
  return [subnets.ipv4, subnets.ipv6].filter((subnet) => subnet !== undefined);
}

function contains(subnet: string, address: string): boolean {
  const prefix = parsePrefix(subnet);
  return prefix !== undefined && containsAddress(prefix, address);
}

function describeLease({ key, attrs, modRevision }: Lease, address: string) {
  const { nodeId, publicIP, publicIPv6, backendType, backendData, backendV6Data } = attrs;
  const data = address.includes(":") ? backendV6Data : backendData;
  return {
    lease: { key, ...(modRevision === undefined ? {} : { revision: modRevision }) },
    node: {
      ...(nodeId === undefined ? {} : { id: nodeId }),
      ...(publicIP === undefined ? {} : { publicIP }),
      ...(publicIPv6 === undefined ? {} : { publicIPv6 }),
    },
    backend: { type: backendType, ...(data === undefined ? {} : { data }) },
  };
}

async function lookUp({ kernel }: Observation, address: string): Promise<Explanation["route"]> {
  const route = await kernel?.routeGet(address);
  if (!route) return undefined;
  const link = await kernel?.link(route.dev);
  return { ...route, ...(link ? { mtu: link.mtu, up: link.up } : {}) };
}
